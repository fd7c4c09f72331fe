"""Two runs compared: the document, the headline, and the table as Markdown."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tilewright.errors import ConfigError, RecordError, reason_of
from tilewright.loop.answer_evaluator import summary_of_report
from tilewright.loop.run_state import lines_of
from tilewright.records import EvalReport
from tilewright.records.base import digest_text
from tilewright.records.event_log import EVENTS, is_eval_run, read_events, turns_of
from tilewright.records.events import RunStarted
from tilewright.records.run_folder import PROBLEMS, read_report
from tilewright.reports.loader import title_of_problem, titles_in
from tilewright.scoring.report_text import ratio_text
from tilewright.scoring.run_changes import (
    Change,
    ProblemChange,
    Standing,
    changes,
    standing_of,
    standings,
)

MAX_NAMED = 5
"""Problems that a sentence names."""
COLUMNS = ("change", "before", "after", "ratio", "problem")


@dataclass(frozen=True)
class ComparedRun:
    """One of the two runs: its folder, its device, and the best candidate of each problem."""

    folder: str
    device: str
    standings: dict[str, Standing]
    sources: dict[str, str]
    """Digests of the problems' source texts, as far as they are known."""
    skipped: tuple[str, ...] = ()
    """Lines that cannot be read, each with its file."""
    evaluator: str = ""
    """The version of tilewright that judged it."""
    titles: dict[str, str] = field(default_factory=dict)
    """Titles of the problems, as far as they are known."""


@dataclass(frozen=True)
class RunComparison:
    """The changes from one run to another."""

    before: ComparedRun
    after: ComparedRun
    rows: list[ProblemChange]
    protocol: str = "strict"

    @property
    def same_device(self) -> bool:
        """Whether the times of both may be compared."""
        return self.before.device == self.after.device


def compared_run(folder: Path, protocol: str) -> ComparedRun:
    """Read a run of `eval`, `bench` or `optimize`.

    Raises:
        RecordError: the folder holds no run, or a damaged one.
        ConfigError: the run has no verdicts of this protocol.
    """
    if is_eval_run(folder):
        report = read_report(folder)
        found, sources = dict[str, Standing](), dict[str, str]()
        if report.request.protocol == protocol:
            item = summary_of_report(report, "", 0.0)
            problem = report.request.problem.id
            found = {problem: standing_of(report.request.candidate.files[0].path, item)}
            sources = {problem: digest_text(report.request.problem.source.text)}
        device, damaged = report.environment.device_name, list[str]()
        evaluator, titles = report.evaluator, {}
        titles[report.request.problem.id] = title_of_problem(report.request.problem)
    elif os.path.isfile(folder / EVENTS):
        damaged = []
        events = list(read_events(folder, with_requests=False, left_out=damaged.append))
        begun = next((event for event in events if isinstance(event, RunStarted)), None)
        if begun is None:
            missing = f"{folder}: its event log does not say how the run began"
            raise RecordError(next(iter(damaged), missing))
        device, sources, evaluator = begun.device, _sources(folder), begun.evaluator
        found = standings(turns_of(events), protocol)
        titles = titles_in(folder, set(found)) if (folder / PROBLEMS).is_file() else {}
    else:
        raise _no_run(folder)
    if not found:
        raise ConfigError(f"{folder}: it has no verdicts of the protocol {protocol}")
    return ComparedRun(str(folder), device, found, sources, tuple(damaged), evaluator, titles)


def _no_run(folder: Path) -> RecordError:
    """Return the error for a folder without a run: what it is instead."""
    if os.path.isfile(folder / PROBLEMS):
        return RecordError(f"{folder}: its event log {EVENTS} is missing; put it back")
    there = os.path.exists(folder)
    what = "no run: it has no report and no event log" if there else "no such folder"
    try:
        os.stat(folder / EVENTS)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        what = f"cannot be read: {reason_of(error)}"
    return RecordError(f"{folder}: {what}; name a run folder of eval, bench or optimize")


def _sources(folder: Path) -> dict[str, str]:
    """Return the digest of each problem's source text; a line that cannot be read has none."""
    path, found = folder / PROBLEMS, dict[str, str]()
    for line in lines_of(path) if path.is_file() else ():
        try:
            row = json.loads(line)
            found[row["id"]] = digest_text(row["source"]["text"])
        except (ValueError, KeyError, TypeError):
            continue
    return found


def compare_runs(
    before: ComparedRun, after: ComparedRun, protocol: str = "strict"
) -> RunComparison:
    """Return the changes; times of two devices are not compared."""
    timed = before.device == after.device
    rows = changes(before.standings, after.standings, timed=timed)
    return RunComparison(before, after, rows, protocol)


def change_text(before: EvalReport, after: EvalReport) -> str:
    """Return one line about the change between two reports of one problem."""
    one, two = (standing_of("", summary_of_report(item, "", 0.0)) for item in (before, after))
    (row,) = changes({"": one}, {"": two})
    change, was, now, ratio, _ = cells(row)
    return f"{change}: {was} before, {now} now" + (f", ratio {ratio}" if ratio else "")


def headline(found: RunComparison) -> str:
    """Return one sentence with the number of each change."""
    counts = Counter(row.change for row in found.rows)
    parts = [f"{counts[change]} {change}" for change in Change if counts[change]]
    noun = "problem" if len(found.rows) == 1 else "problems"
    return f"{len(found.rows)} {noun}: {', '.join(parts)}."


def notes(found: RunComparison) -> Iterator[str]:
    """Yield sentences about what could not be compared."""
    if not found.same_device:
        yield (
            f"The runs are of two devices, {found.before.device} and {found.after.device}: "
            "speed-ups are shown and not compared."
        )
    alike = found.before.standings.keys() & found.after.standings.keys()
    if not alike:
        yield "The runs have no problem in common."
    one, other = found.before.sources, found.after.sources
    changed = sorted(name for name in alike if one.get(name, "") != other.get(name, ""))
    if changed:
        names = ", ".join(changed[:MAX_NAMED]) + (", ..." if len(changed) > MAX_NAMED else "")
        yield f"The problems themselves differ, so their verdicts do not compare: {names}."


def cells(row: ProblemChange) -> tuple[str, ...]:
    """Return the texts of a row of the table."""
    ratio = "" if row.ratio is None else ratio_text(row.ratio, row.low, row.high)
    return row.change, _text(row.before), _text(row.after), ratio, row.problem


def _text(item: Standing | None) -> str:
    if item is None:
        return ""
    if not item.is_correct or item.speedup is None:
        return item.verdict
    # Whether it is faster than the baseline is not the question here.
    return ratio_text(item.speedup, item.low, item.high)


def as_document(found: RunComparison) -> dict[str, Any]:
    """Return the comparison as JSON values."""
    return {
        "before": found.before.folder,
        "after": found.after.folder,
        "devices": [found.before.device, found.after.device],
        "headline": headline(found),
        "notes": list(notes(found)),
        "skipped": [*found.before.skipped, *found.after.skipped],
        "rows": [asdict(row) for row in found.rows],
    }


def as_markdown(found: RunComparison) -> str:
    """Return the headline and the changed problems as Markdown."""
    lines = [f"**{headline(found)}**", "", *notes(found)]
    rows = [row for row in found.rows if row.change != Change.SAME]
    if rows:
        lines += ["", _line(COLUMNS), _line(["---"] * len(COLUMNS))]
        lines += [_line(cells(row)) for row in rows]
    return "\n".join(lines).rstrip() + "\n"


def _line(values: Sequence[str]) -> str:
    plain = (" ".join(value.split()).replace("|", "\\|").replace("<", "&lt;") for value in values)
    return f"| {' | '.join(plain)} |"
