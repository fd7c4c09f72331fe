"""`tilewright problems lint`: find problems that accept a trivial answer."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import click
from rich.console import RenderableType

from tilewright.api import build_request
from tilewright.cli import options
from tilewright.cli.options import load_settings, one_model, ready_to_judge, switch
from tilewright.cli.output import print_line, print_skipped
from tilewright.cli.progress import Progress
from tilewright.cli.render import show_result, table
from tilewright.config import LOCAL, Config
from tilewright.errors import ConfigError, RecordError, writing
from tilewright.executors.local import LocalExecutor
from tilewright.problems.imported_sets import find_problems
from tilewright.records import Candidate, Problem
from tilewright.records.problem_lint import Health, is_weak, memory_of, published_name
from tilewright.records.whole_files import write_whole
from tilewright.scoring.report_text import cut, engineering, short_time

MAX_NAME = 100
"""Most characters of a problem's name in the table."""


@click.command("lint")
@click.argument("address")
@options.DEVICE
@switch("--relint", "Lint problems again that were linted before.")
@options.JSON
@options.SETTINGS
def command(address: str, relint: bool, as_json: bool, **given: Any) -> int:  # noqa: ANN401 - the options
    """Find problems at ADDRESS that accept answers which do no work.

    The linter tries zeros, ones, a constant, a copy of an input, another input's output and
    skipped parameters. It compares each with the reference, by the published and the strict
    tolerances. It exits with 1 if one passes under the strict protocol. Strict scores leave such
    problems out; official scores keep them.

    The columns memory and reference are those of the largest case. Memory is the peak of a call
    on a GPU, and the size of inputs and outputs on a CPU.
    """
    settings = load_settings(given)
    if settings.executor != LOCAL:
        raise ConfigError(
            f"the linter runs on this machine only, and the executor is {settings.executor}: run "
            f"it on a machine of that kind, or here with --set executor={LOCAL}"
        )
    ready_to_judge(settings)
    skipped: list[str] = []
    problems = find_problems(address, settings.home, skipped.append)
    print_skipped(skipped)
    found = list(zip(problems, _healths(problems, settings, relint=relint), strict=True))
    rows = [{**item.model_dump(mode="json"), "weak": _weak(p, item)} for p, item in found]
    show_result(as_json, rows, _view(found))
    weak = sum(bool(is_weak(health, "strict")) for _, health in found)
    failed = sum(bool(health.failed) for _, health in found)
    noun = "problem" if len(problems) == 1 else "problems"
    print_line(f"{len(problems)} {noun}, {weak} weak strictly, {failed} cannot be judged here")
    return 1 if weak else 0


def _healths(problems: list[Problem], settings: Config, *, relint: bool) -> Iterator[Health]:
    model, devices = one_model(settings), settings.eval.devices
    executor = LocalExecutor(settings.home, devices=devices)

    def looked(problem: Problem) -> Health:
        path = _path(settings.home, problem, model)
        known = None if relint else _read(path)
        if known is None:
            progress.about(problem.id)
            # The candidate fills the request; the linter does not run it.
            placeholder = Candidate(language="torch", files=(problem.source,), entry=problem.entry)
            request = build_request(placeholder, problem, settings)
            known = executor.lint(request, progress)
            with writing(path):
                write_whole(path, known.to_json(indent=1))
        return known

    with executor, Progress("lint") as progress, ThreadPoolExecutor(max(len(devices), 1)) as pool:
        progress.reached(0, len(problems))
        for number, health in enumerate(pool.map(looked, problems), start=1):
            progress.reached(number, len(problems))
            yield health


def _path(home: Path, problem: Problem, model: str) -> Path:
    kind = re.sub(r"[\W_]", "-", model)
    return home / "health" / f"{problem.digest()[:32]}.{kind}.json"


def _read(path: Path) -> Health | None:
    try:
        return Health.from_json(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, RecordError):
        return None


def lint_results(
    problems: list[Problem], address: str, settings: Config, model: str
) -> dict[str, Any]:
    """Return the problems that the linter found unsound, and how many were never linted.

    `address` names the problems, for the command that lints them.
    """
    found = {problem.id: _read(_path(settings.home, problem, model)) for problem in problems}
    passing = {name: is_weak(h, "strict") for name, h in found.items() if h is not None}
    unseen = len(found) - len(passing)
    if unseen:
        noun = "problem was" if len(found) == 1 else "problems were"
        lint = f"tilewright problems lint {shlex.quote(address)}"
        meaning = "a weak problem accepts wrong answers"
        print_line(f"{unseen} of {len(found)} {noun} never linted ({meaning}); optional: {lint}")
    weak = {name: answers for name, answers in passing.items() if answers}
    return {"unsound_problems": weak, "problems_not_linted": unseen}


def _weak(problem: Problem, health: Health) -> dict[str, list[str]]:
    return {
        "strict": list(is_weak(health, "strict")),
        "official": list(is_weak(health, "official", published_name(problem))),
    }


def _view(found: list[tuple[Problem, Health]]) -> RenderableType:
    head = ("problem", "weak strictly", "weak by the published tolerance", "memory", "reference")
    made = table(*head, "notes", right=(3, 4), wrap=(1, 2))
    for problem, health in found:
        cases, weak = health.cases, _weak(problem, health)
        notes = [
            "random" if any(case.random for case in cases) else "",
            "" if all(case.deterministic for case in cases) else "not deterministic",
            health.failed[:100],
        ]
        made.add_row(
            cut(problem.id, MAX_NAME),
            *(", ".join(names) or "no" for names in (weak["strict"], weak["official"])),
            engineering(max(map(memory_of, cases)), "B") if cases else "",
            short_time(1e6 * max(case.call_s for case in cases)) if cases else "",
            ", ".join(filter(None, notes)),
        )
    return made
