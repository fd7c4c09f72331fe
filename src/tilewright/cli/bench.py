"""`tilewright bench`: evaluate many candidates in one run, which can be killed and resumed."""

from __future__ import annotations

import time
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any, cast

import click

from tilewright import config
from tilewright._version import __version__
from tilewright.cli.lint import known_health
from tilewright.cli.optimize import MODEL_OPTIONS, asks_a_model, opened
from tilewright.cli.options import (
    DEVICE,
    JSON,
    OUT,
    RESUME,
    SETTINGS,
    VERBOSE,
    load_settings,
    one_model,
    ready_to_judge,
)
from tilewright.cli.output import print_line, print_skipped
from tilewright.cli.progress import Progress
from tilewright.cli.renamed_options import RenamingCommand
from tilewright.cli.render import show_result
from tilewright.cli.render_bench import bench_view, turn_text
from tilewright.cli.run_output import (
    check_resumed,
    refuse_with_resume,
    resume_hint,
    usable_home,
)
from tilewright.config import Config
from tilewright.errors import ConfigError
from tilewright.loop.answer_evaluator import open_evaluator
from tilewright.loop.budget import usage_of
from tilewright.loop.driver import drive
from tilewright.loop.existing_answers import read_answers
from tilewright.loop.rollout_environment import judged
from tilewright.loop.run_search import SearchResult, play
from tilewright.loop.run_state import BenchRun, begin, is_unjudged, resume
from tilewright.problems.imported_sets import find_problems
from tilewright.records import Problem, Protocol
from tilewright.records.base import digest_text
from tilewright.records.event_log import EventLog, read_events, turns_of
from tilewright.records.events import Ask, RunStarted, Turn
from tilewright.records.problem_lint import is_weak
from tilewright.records.run_folder import create_run
from tilewright.scoring.learning_curves import curves
from tilewright.scoring.summary import summary_of

__all__ = ["command"]

PROTOCOLS = ("strict", "official")


@click.command("bench", cls=RenamingCommand, verb="bench")
@click.argument("problems", required=False, default="")
@click.option(
    "--candidates",
    metavar="WHERE",
    help="A folder, JSON lines, parquet, a run, or `reference`: the reference of each problem as "
    "its candidate.",
)
@MODEL_OPTIONS
@click.option(
    "--protocol", "protocols", metavar="LIST", help="strict (default), official, or strict,official"
)
@click.option("--language", metavar="NAME", help="Language of all candidates.")
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="Evaluations at the same time; a device times one of them at a time.",
)
@RESUME
@click.option(
    "--max-candidates", type=click.IntRange(1), help="Most evaluations of this invocation."
)
@DEVICE
@JSON
@OUT
@SETTINGS
@VERBOSE
def command(**given: Any) -> int:  # noqa: ANN401 - the options above
    """Evaluate many candidates for the problems at an address, and score them.

    PROBLEMS is a set (kernelbench), a part of it (kernelbench/level1, kernelbench/level1-12), the
    path of a problem, or `bundled`. Candidates come from files (--candidates), or a model writes
    them over several turns and samples (--model). Each result is stored at once. --resume
    continues a stopped run and repeats no evaluation.
    """
    if given["model"] or asks_a_model(given["resumed"]):
        return _of_model(given)
    run, settings = _resumed(given) if given["resumed"] else _begun(given)
    usable_home(settings)
    start, count = time.monotonic(), 0
    before, total = len(run.finished), len(run.sources)
    with (
        EventLog(run.folder, run.log_bytes) as log,
        Progress("bench", verbose=given["verbose"]) as progress,
        resume_hint(progress, "bench", run.folder),
    ):
        progress.reached(before, total)
        for count, turn in enumerate(_turns(run, settings, log, given, progress), start=1):
            progress.reached(before + count, total)
            progress.note(f"{before + count} of {total}, {turn_text(turn)}")
    turns = turns_of(read_events(run.folder))
    summary = summary_of(turns, run.begun.unsound_problems, _without_candidate(run))
    left = total - len(turns)
    document = {"run": str(run.folder), "left": left, **summary}
    show_result(given["as_json"], document, bench_view(summary))
    print_line(f"{count} judged in {time.monotonic() - start:.0f} s, {left} left")
    unjudged = sum(is_unjudged(turn) for turn in turns)
    if unjudged:
        print_line(f"{unjudged} unjudged: tilewright bench --resume {run.folder} tries again")
    print_line(
        f"run {run.folder}; next: tilewright {'bench --resume' if left else 'report'} {run.folder}"
    )
    return 0


def _of_model(given: dict[str, Any]) -> int:
    """Score a model by each turn, and by the best turn so far."""
    if given["candidates"] or given["protocols"]:
        raise ConfigError(
            "--model writes its own candidates, under one protocol: leave out --candidates, and "
            "give --set eval.protocol=official instead of --protocol"
        )
    run, settings, policy = opened({**given, "problem": given["problems"]}, "bench", _health)
    usable_home(settings)
    ended, turns = SearchResult(), list(run.finished)
    with (
        Progress("bench", verbose=given["verbose"]) as progress,
        closing(policy),
        resume_hint(progress, "bench", run.folder),
        closing(play(run, settings, policy, progress, ended)) as played,
    ):
        for turn in islice(played, given["max_candidates"]):
            turns.append(turn)
            progress.note(turn_text(turn))
    summary = {
        **summary_of(turns, run.begun.unsound_problems),
        "curves": curves(turns, run.begun.unsound_problems),
        "spent": usage_of(turns).model_dump(),
    }
    show_result(given["as_json"], {"run": str(run.folder), **summary}, bench_view(summary))
    if ended.lacking:
        print_line(f"the budget of {ended.lacking} is used up")
    print_line(f"run {run.folder}; next: tilewright report {run.folder}")
    return 0


def _begun(given: dict[str, Any]) -> tuple[BenchRun, Config]:
    if not given["problems"] or not given["candidates"]:
        raise ConfigError(
            "bench needs PROBLEMS and --candidates WHERE or --model NAME, or --resume RUN"
        )
    settings = load_settings(given)
    ready_to_judge(settings)
    protocols = tuple(part.strip() for part in (given["protocols"] or "strict").split(","))
    for name in protocols:
        if name not in PROTOCOLS or protocols.count(name) > 1:
            raise ConfigError(f"--protocol {name!r}: {' or '.join(PROTOCOLS)}, each once")
    skipped: list[str] = []
    problems = find_problems(given["problems"], settings.home, skipped.append)
    answers = read_answers(given["candidates"], problems)
    print_skipped([*skipped, *answers.skipped])
    if not answers.sources:
        raise ConfigError(f"--candidates {given['candidates']}: no candidate for these problems")
    model = one_model(settings)
    begun = RunStarted(
        kind="bench",
        name=given["candidates"],
        problems=given["problems"],
        protocols=cast("tuple[Protocol, ...]", protocols),
        language=given["language"],
        evaluator=__version__,
        device=model,
        **_health(problems, settings, model),
    )
    folder = create_run(settings.runs, config.dump(settings))
    return begin(folder, begun, problems, answers.sources), settings


def _without_candidate(run: BenchRun) -> set[str]:
    return {item.id for item in run.problems} - {ask.problem for ask in run.sources}


def _health(problems: list[Problem], settings: Config, model: str) -> dict[str, Any]:
    """Return the problems that the linter found unsound, and how many were never linted."""
    found = {problem.id: known_health(settings.home, problem, model) for problem in problems}
    unseen = sum(health is None for health in found.values())
    if unseen:
        print_line(
            f"{unseen} of {len(problems)} problems were never linted: tilewright problems lint"
        )
    passing = {name: is_weak(h, "strict") for name, h in found.items() if h is not None}
    weak = {name: answers for name, answers in passing.items() if answers}
    return {"unsound_problems": weak, "problems_not_linted": unseen}


def _resumed(given: dict[str, Any]) -> tuple[BenchRun, Config]:
    fixed = ("problems", "candidates", "protocols", "language", "device", "out", "file")
    refuse_with_resume(given, fixed)
    folder = Path(given["resumed"])
    run = resume(folder)
    settings = load_settings(given, recorded=folder / "run.yaml")
    ready_to_judge(settings)
    check_resumed(folder, run.begun, one_model(settings))
    return run, settings


def _turns(
    run: BenchRun, settings: Config, log: EventLog, given: dict[str, Any], progress: Progress
) -> Any:  # noqa: ANN401 - a generator, which the caller may close
    """Evaluate the remaining candidates. Running evaluations end with this generator."""
    workers, total = given["workers"], len(run.sources)
    problems = {problem.id: problem for problem in run.problems}
    devices = settings.eval.devices
    room = iter(range(total if given["max_candidates"] is None else given["max_candidates"]))

    executor, judge = open_evaluator(settings, run.folder, progress, workers)

    def stop() -> None:
        judge.stop()
        executor.kill()

    def play(ask: Ask) -> Turn:
        text = "\n".join(item.text for item in run.sources[ask])
        problem, files, language = problems[ask.problem], run.sources[ask], run.begun.language
        judgements = []
        for protocol in run.begun.protocols:
            section = settings.eval.model_copy(update={"protocol": protocol})
            chosen = settings.model_copy(update={"eval": section})
            judgements.append(judged(judge, ask, problem, files, chosen, language)[0])
        return Turn(ask=ask, source=digest_text(text), judgements=tuple(judgements))

    try:
        yield from drive(
            run.strategy,
            play,
            log,
            max_concurrency=max(workers, 2 * len(devices)),
            waiting=run.waiting,
            admit=lambda _: next(room, None) is not None,
            stop=stop,
        )
    finally:
        executor.close()
