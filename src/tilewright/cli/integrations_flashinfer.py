"""`tilewright integrations run flashinfer`: solutions of FlashInfer traces, and their traces."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from tilewright.cli import options
from tilewright.cli.options import load_settings, option, ready_to_judge
from tilewright.cli.output import print_line, print_skipped, printable
from tilewright.cli.progress import Progress
from tilewright.cli.render import show_result, table
from tilewright.config import Config
from tilewright.errors import ConfigError, NoVerdict, ProblemError, writing
from tilewright.integrations.flashinfer import (
    JudgedSolution,
    candidate_of,
    judge_solution,
    read_solutions,
)
from tilewright.problems.sets.base import Found
from tilewright.problems.sets.flashinfer import Definition, problem_of, read_definitions

Pair = tuple[Mapping[str, Any], Definition]


@click.command("flashinfer")
@option("--from", "DIR", "A data set: definitions, workloads, solutions.", "source", required=True)
@option("--traces", "FILE", "The file of traces, which are added at its end.", required=True)
@option("--solution", "NAME", "The solution to judge; default: all of them.")
@options.DEVICE
@options.JSON
@options.OUT
@options.HOST
@options.SETTINGS
@options.VERBOSE
def command(source: str, traces: str, solution: str | None, **given: Any) -> int:  # noqa: ANN401 - the options above
    """Judge the solutions of FlashInfer traces on their workloads, and write a trace for each.

    A verdict without a status of theirs gets no trace. The command names it, and an unjudged one
    gives exit code 4.
    """
    settings = load_settings(given)
    ready_to_judge(settings)
    skipped: list[str] = []
    pairs = _pairs(Path(source), solution, skipped)
    print_skipped(skipped)
    if not pairs:
        raise ConfigError(f"--from {source}: no solution there that can be judged")
    done = []
    with Progress("flashinfer", verbose=given["verbose"]) as progress:
        for judged in _judged(pairs, settings, Path(traces), progress):
            done.append(judged)
            progress.note(f"{judged.solution}, {judged.workload}: {judged.verdict}: {judged.why}")
    made = table("solution", "workload", "verdict", "status")
    rows = [_row(item) for item in done]
    for row in rows:
        made.add_row(*(printable(row[name] or "no trace") for name in list(row)[:4]))
    show_result(given["as_json"], rows, made)
    print_line(f"{sum(1 for item in done if item.trace)} traces of {len(done)} are in {traces}")
    unjudged = any(item.verdict == "unjudged" for item in done)
    return NoVerdict.exit_code if unjudged else 0


def _pairs(source: Path, name: str | None, skipped: list[str]) -> list[Pair]:
    """Return the solutions of a data set with their definitions."""
    found, pairs = Found(), []
    definitions = {item.name: item for item, _ in read_definitions(source, found)}
    skipped += found.skipped
    for item in read_solutions(source, skipped):
        if name not in (None, item["name"]):
            continue
        definition = definitions.get(item["definition"])
        if definition is None:
            skipped.append(f"{item['name']}: there is no definition {item['definition']}")
            continue
        try:
            problem_of(definition, f"{item['name']}: {definition.name}")
            candidate_of(item, definition, definition.workloads[0])
        except (ConfigError, ProblemError) as error:
            # One bad file must not end the evaluation of the others.
            skipped.append(str(error))
        else:
            pairs.append((item, definition))
    return pairs


def _judged(
    pairs: list[Pair], settings: Config, traces: Path, progress: Progress
) -> Iterator[JudgedSolution]:
    with writing(traces), open(traces, "a", encoding="utf-8") as file:
        for solution, definition in pairs:
            for judged in judge_solution(solution, definition, settings, progress):
                if judged.trace is not None:
                    file.write(f"{json.dumps(judged.trace)}\n")
                    file.flush()
                yield judged


def _row(item: JudgedSolution) -> dict[str, str | None]:
    return {
        "solution": item.solution,
        "workload": item.workload,
        "verdict": item.verdict,
        "status": item.trace["evaluation"]["status"] if item.trace else None,
        "report": str(item.folder) if item.folder else None,
    }
