"""The content of run folders: turns, numbers, and a limited number of whole reports."""

from __future__ import annotations

import gc
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from heapq import nlargest, nsmallest
from pathlib import Path
from typing import Any

import yaml

from tilewright.errors import ConfigError, RecordError, reason_of, writing
from tilewright.loop.run_state import CANDIDATES, lines_of
from tilewright.problems.description import about
from tilewright.records import EvalReport, Problem
from tilewright.records.base import digest_text, is_text
from tilewright.records.event_log import is_eval_run, read_events, turns_of
from tilewright.records.events import TRAININGS, WITHOUT_DEVICE, EvalSummary, RunStarted, Turn
from tilewright.records.run_folder import PROBLEMS, read_report
from tilewright.records.whole_files import write_whole
from tilewright.reports.eval_run import read_eval_run
from tilewright.reports.strategy_report import comparison_of
from tilewright.reports.training_steps import steps_of
from tilewright.scoring.report_text import cut
from tilewright.scoring.summary import summary_of, weak_problems

MAX_WHOLE_REPORTS = 300
"""Most candidates that a page shows in full."""
MAX_EXTREME = 15
"""One of so many of them is among the slowest of a run, and as many among the fastest."""
ANNOTATIONS = "annotations.yaml"


MAX_TITLE = 80
"""Most characters of a problem's title."""
STAMP = re.compile(r"(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)\d\d-")
"""Date and time at the start of the name of a run folder."""


def begun_at(name: str) -> str:
    """Return the time in the name of a run folder, in UTC; empty if a person has named it."""
    found = STAMP.match(name)
    return "" if found is None else "{}-{}-{} {}:{} UTC".format(*found.groups())


def device_of(begun: RunStarted) -> str:
    """Return the device of a run; empty if the run has none."""
    return "" if begun.device == WITHOUT_DEVICE else begun.device


def title_of(begun: RunStarted) -> str:
    """Return the title of a page of a run: its problems, and where or by what it was made."""
    if begun.kind in TRAININGS:
        return f"Training on {begun.problems} ({begun.name})"
    return ", ".join(filter(None, (begun.problems, device_of(begun))))


@dataclass(frozen=True)
class Run:
    folder: Path
    begun: RunStarted
    turns: list[Turn]
    summary: dict[str, Any]
    sources: str
    """Digest of the problems that were judged."""
    annotations: dict[str, str] = field(default_factory=dict)
    left: int = 0
    """Candidates that have not been judged yet."""
    name: str = ""
    """The name of the run among the runs on the page."""
    unanswered: frozenset[str] = frozenset()
    """Problems without a candidate."""
    comparison: dict[str, Any] | None = None
    """The comparison of its strategies, if it has several."""
    titles: dict[str, str] = field(default_factory=dict)
    """The title of each problem that has turns."""
    steps: list[dict[str, Any]] = field(default_factory=list)
    """The steps of a training, with their kinds and figures."""

    @property
    def begun_at(self) -> str:
        """The time in the name of the folder, in UTC; empty if a person has named it."""
        return begun_at(self.folder.resolve().name)


@dataclass(frozen=True)
class Gathered:
    """Runs that can be compared, and the reports that are shown in full."""

    runs: list[Run]
    whole: dict[str, EvalReport]
    """By `RUN NUMBER/ask/protocol`."""
    full: bool = False
    """Whether the page shows everything, regardless of its size."""
    weak: frozenset[str] = frozenset()
    """Weak problems, which count in no strict score of any run."""
    skipped: tuple[str, ...] = ()
    """Lines and reports that cannot be read, each with its file."""


@contextmanager
def uncollected() -> Iterator[None]:
    """Pause the garbage collector: records hold no cycles, and reading them takes a quarter."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def read_run(folder: Path, skipped: list[str] | None = None) -> Run:
    """Read a run folder; damaged lines of its log are named in `skipped`."""
    if is_eval_run(folder):
        return _eval_run(folder)
    damaged: list[str] = []
    events = list(read_events(folder, with_requests=False, left_out=damaged.append))
    if not events or not isinstance(events[0], RunStarted):
        missing = f"{folder}: the first line of its event log is missing"
        raise RecordError(next(iter(damaged), missing))
    if skipped is not None:
        skipped += damaged
    turns = turns_of(events)
    begun, notes = events[0], _annotations(folder)
    lacking, left = _without_candidate(folder, turns)
    summary = summary_of(turns, begun.unsound_problems, lacking)
    compared = comparison_of(begun, turns)
    return Run(
        folder,
        begun,
        turns,
        summary,
        _sources(folder),
        annotations=notes,
        left=left,
        name=begun.name,
        unanswered=lacking,
        comparison=compared,
        titles=titles_in(folder, {turn.ask.problem for turn in turns}),
        steps=steps_of(events),
    )


def _eval_run(folder: Path) -> Run:
    """Read a run of `eval`, as if it had an event log and a file of problems."""
    found = read_eval_run(folder)
    problem = found.problem
    return Run(
        folder,
        found.begun,
        [found.turn],
        summary_of([found.turn]),
        digest_text(f"{problem.to_json()}\n"),
        annotations=_annotations(folder),
        name=found.begun.name,
        titles={problem.id: title_of_problem(problem)},
    )


def titles_in(folder: Path, wanted: set[str]) -> dict[str, str]:
    """Return the titles of the wanted problems, as far as they can be read."""
    found = {}
    for line in lines_of(folder / PROBLEMS):
        with suppress(RecordError):
            problem = Problem.from_json(line)
            if problem.id in wanted:
                found[problem.id] = title_of_problem(problem)
    return found


def title_of_problem(problem: Problem) -> str:
    """Return the first sentence or words of a problem's description, else of its docstring."""
    text = problem.description.partition("\n")[0]
    if not text:
        # A run may hold problems of another version, whose text does not parse. The last two:
        # nested deeper than Python's parser can follow.
        with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            text = about(problem)
    return cut(text.partition(". ")[0].removesuffix("."), MAX_TITLE)


def _without_candidate(folder: Path, turns: Sequence[Turn]) -> tuple[frozenset[str], int]:
    """Return the problems without a candidate, and the number of candidates without a verdict."""
    path = folder / CANDIDATES
    if not path.is_file():
        # A model writes the candidates, and gets every problem.
        return frozenset(), 0
    with open(path, "rb") as file:
        left = max(sum(1 for _ in file) - len(turns), 0)
    lacking = set(_said(folder / PROBLEMS, "id")) - {turn.ask.problem for turn in turns}
    if left and lacking:
        lacking -= set(_said(path, "ask", "problem"))
    return frozenset(lacking), left


def _said(path: Path, *names: str) -> Iterator[str]:
    """Yield the text under nested keys in each line of a file; skip a line without it."""
    for line in lines_of(path):
        try:
            found = json.loads(line)
            for name in names:
                found = found[name]
        except (ValueError, KeyError, TypeError):
            continue
        if isinstance(found, str):
            yield found


def gather(folders: Sequence[Path], *, full: bool = False) -> Gathered:
    """Read runs that make one leaderboard.

    A problem that is weak by the linter or by a report of one run is left out of the scores of all
    runs.
    """
    skipped: list[str] = []
    runs = [read_run(folder, skipped) for folder in folders]
    names = Counter(run.name for run in runs)
    by_run = [weak_problems(run.turns).union(run.begun.unsound_problems) for run in runs]
    weak = frozenset[str]().union(*by_run)
    for number, run in enumerate(runs):
        _compare(runs[0], run)
        if names[run.name] > 1:
            runs[number] = replace(run, name=f"{run.name} ({run.folder})")
        if weak != by_run[number]:
            summary = summary_of(run.turns, weak, run.unanswered)
            runs[number] = replace(runs[number], summary=summary)
    whole = {}
    for number, turn, item in chosen(runs, None if full else MAX_WHOLE_REPORTS):
        path = runs[number].folder / item.report
        try:
            whole[f"{number}/{turn.ask.id}/{item.protocol}"] = read_report(path)
        except RecordError as error:
            # The list still shows the summary from the event log.
            skipped.append(str(error))
    return Gathered(runs, whole, full, weak, tuple(skipped))


def _compare(one: Run, other: Run) -> None:
    both = f"{one.folder} and {other.folder} cannot be compared"
    for name in ("problems", "protocols", "device"):
        ours, theirs = getattr(one.begun, name), getattr(other.begun, name)
        if ours != theirs and (name != "protocols" or set(ours) != set(theirs)):
            raise ConfigError(f"{both}: {name} are {ours!r} and {theirs!r}; make a report of each")
    if one.sources != other.sources:
        differing = "their problems have equal names and different content"
        raise ConfigError(f"{both}: {differing}; make a report of each")


def chosen(runs: list[Run], most: int | None) -> list[tuple[int, Turn, EvalSummary]]:
    """Return the turns that are shown in full, with an equal share for each run."""
    shown = []
    for number, run in enumerate(runs):
        found = [(turn, item) for turn in run.turns for item in turn.judgements if item.report]
        places = range(len(found)) if most is None else _picked(found, max(most // len(runs), 1))
        shown += [(number, *found[place]) for place in places]
    return shown


def _picked(found: list[tuple[Turn, EvalSummary]], most: int) -> Sequence[int]:
    """Return the places of rejected, unjudged and extreme turns, then an even selection."""
    if len(found) <= most:
        return range(len(found))
    items = [item for _, item in found]
    refused = [n for n, item in enumerate(items) if item.verdict in ("rejected", "unjudged")]
    odd = [n for n, item in enumerate(items) if item.findings]
    speeds = [(item.speedup, n) for n, item in enumerate(items) if item.speedup is not None]
    share = most // MAX_EXTREME
    ends = nsmallest(share, speeds) + nlargest(share, speeds)
    unusual = list(dict.fromkeys([*refused, *odd]))[: most // 2]
    kept = dict.fromkeys([*unusual, *(place for _, place in ends)])
    rest = [place for place in range(len(found)) if place not in kept]
    room = most - len(kept)
    return [*kept, *rest[:: max(len(rest) // room, 1)][:room]]


def winners(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the last measurement of the best candidate of each problem of a search."""
    found = {}
    for path in sorted(folder.glob("winner/*/report.json")):
        with suppress(RecordError):
            report = read_report(path)
            ends = {"low": report.speedup_low, "high": report.speedup_high}
            found[report.request.problem.id] = {
                "verdict": report.verdict,
                "speedup": report.speedup,
                **ends,
            }
    return found


def annotate(folders: Sequence[Path], ask: str, text: str) -> None:
    """Store a person's comment on a verdict; the verdict is unchanged."""
    if not is_text(text):
        raise ConfigError(f"--annotate {ask} {text!r}: not UTF-8")
    runs = [read_run(folder) for folder in dict.fromkeys(folders)]
    having = [run for run in runs if ask in {turn.ask.id for turn in run.turns}]
    if len(having) != 1:
        names = " and ".join(str(run.folder) for run in having or runs)
        known = ", ".join(turn.ask.id for turn in runs[0].turns[:3])
        said = f"{names} have it; give one of them alone" if having else f"not in {names}"
        raise ConfigError(f"--annotate {ask}: {said}" + ("" if having else f", with {known}, ..."))
    (run,) = having
    path, kept = run.folder / ANNOTATIONS, {**run.annotations, ask: text}
    with writing(path):
        write_whole(path, yaml.safe_dump(kept))


def _sources(folder: Path) -> str:
    try:
        return digest_text((folder / PROBLEMS).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(f"{folder / PROBLEMS}: cannot be read: {reason_of(error)}") from error


def _annotations(folder: Path) -> dict[str, str]:
    path = folder / ANNOTATIONS
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise RecordError(f"{path}: cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise RecordError(f"{path}: write lines of the form `candidate: text`")
    if not all(is_text(str(text)) for pair in found.items() for text in pair):
        raise RecordError(f"{path}: holds text that has no UTF-8 encoding; remove it")
    return {str(key): str(value) for key, value in found.items()}
