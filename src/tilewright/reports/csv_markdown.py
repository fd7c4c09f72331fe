"""The content of a report as CSV, one row for each verdict, and its tables as Markdown."""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Iterator
from typing import Any

from tilewright.reports.loader import Gathered, Run
from tilewright.scoring.summary import group_of

__all__ = ["MAX_FLIPS", "as_csv", "as_markdown"]

COLUMNS = (
    *("run", "ask", "problem", "group", "protocol", "verdict", "speedup", "low", "high", "light"),
    *("seconds", "reason", "labels", "findings", "note", "report", "again"),
)
HEADLINE = (
    *("run", "protocol", "judged", "without a candidate", "correct"),
    *("fast_1", "95 %", "believed", "geometric mean"),
)
REPLAY = "tilewright eval --from-report"
MAX_FLIPS = 200
"""Most rows in the table of differing verdicts. The CSV has all of them."""


def as_csv(gathered: Gathered) -> str:
    """Return one line for each verdict."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(_lines(gathered))
    return buffer.getvalue()


def _lines(gathered: Gathered) -> Iterator[tuple[Any, ...]]:
    for run in gathered.runs:
        name, again = _plain(run.name), f"{REPLAY} {shlex.quote(str(run.folder.resolve()))}/"
        for turn in run.turns:
            ask, problem = _plain(turn.ask.id), _plain(turn.ask.problem)
            group = _plain(group_of(turn.ask.problem))
            note = _plain(run.annotations.get(turn.ask.id, ""))
            for item in turn.judgements:
                # One tuple, and no call for an empty cell: a run has up to a million cells.
                yield (
                    name,
                    ask,
                    problem,
                    group,
                    item.protocol,
                    item.verdict,
                    item.speedup,
                    item.low,
                    item.high,
                    item.roofline_fraction,
                    item.seconds,
                    _plain(item.reason) if item.reason else "",
                    _plain("; ".join(item.labels)) if item.labels else "",
                    _plain("; ".join(item.findings)) if item.findings else "",
                    note,
                    _plain(item.report),
                    again + shlex.quote(item.report) if item.report else "",
                )


def _plain(text: str) -> str:
    """Return a text that a spreadsheet does not run as a formula."""
    # The first test is cheap and is enough for most of a million cells.
    if text[:1].isalnum() or text.lstrip()[:1] not in ("=", "+", "-", "@"):
        return text
    return f"'{text}"


def as_markdown(gathered: Gathered, title: str) -> str:
    """Return the tables of the page."""
    lines = [f"# {_cell(title)}", ""]
    lines += [f"| {' | '.join(HEADLINE)} |", f"| {' | '.join('---' for _ in HEADLINE)} |"]
    for run in gathered.runs:
        for protocol, numbers in run.summary["protocols"].items():
            cells = [_cell(run.name), protocol, *_headline(numbers)]
            lines.append(f"| {' | '.join(cells)} |")
    lines += [line for run in gathered.runs for line in _published(run)]
    lines += [line for run in gathered.runs for line in _drkernel(run)]
    notes = [(run, *note) for run in gathered.runs for note in run.annotations.items()]
    if notes:
        lines += ["", "## Annotations", "", "| run | candidate | note |", "| --- | --- | --- |"]
        lines += [
            f"| {_cell(run.name)} | {_cell(ask)} | {_cell(text)} |" for run, ask, text in notes
        ]
    several = len(gathered.runs) > 1
    flips = [(run, item) for run in gathered.runs for item in run.summary["flips"]]
    if flips:
        lines += ["", "## Verdicts that differ", ""]
        lines += ["| candidate | verdicts | by which defect | why |", "| --- | --- | --- | --- |"]
        for run, flip in flips[:MAX_FLIPS]:
            whose = f"{run.name}: {flip['ask']}" if several else flip["ask"]
            said = ", ".join(f"{name}: {verdict}" for name, verdict in flip["verdicts"].items())
            lines.append(f"| {_cell(whose)} | {said} | {flip['cause']} | {_cell(flip['why'])} |")
        if len(flips) > MAX_FLIPS:
            lines += ["", f"{len(flips) - MAX_FLIPS} more are in report.csv."]
    return "\n".join(lines) + "\n"


def _headline(numbers: dict[str, Any]) -> list[str]:
    judged = [str(numbers["judged"]), str(numbers["unanswered"])]
    if not numbers["counted"]:
        return [*judged, *[""] * 5]
    one = next((item for item in numbers["fast_p"] if item["p"] == 1), dict[str, Any]())
    fast, low, high, believed = (one.get(key) for key in ("fast_p", "low", "high", "believed"))
    mean = numbers["geometric_mean"]
    return [
        *judged,
        f"{numbers['correct'] / numbers['counted']:.1%}",
        "" if fast is None else f"{fast:.1%}",
        "" if low is None else f"{low:.1%} to {high:.1%}",
        "" if believed is None else f"{believed:.1%}",
        "" if mean is None else f"{mean:.3f}x",
    ]


def _published(run: Run) -> Iterator[str]:
    found = run.summary["protocols"].get("official", {}).get("published", {})
    for name, item in found.items():
        speed = item["speedup_global"]
        yield ""
        yield (
            f"{name} by its own rules ({_cell(run.name)}): call accuracy "
            f"{item['call_accuracy']:.1%}, execute accuracy {item['execute_accuracy']:.1%}, "
            f"speed-up {'unknown' if speed is None else f'{speed:.3f}x'}"
        )


def _drkernel(run: Run) -> Iterator[str]:
    found = run.summary["drkernel"]
    for name, title in (("last", "last turn"), ("best", "best of history")) if found else ():
        known = {key: share for key, share in found[name].items() if share is not None}
        said = ", ".join(f"{key} {share:.1%}" for key, share in known.items())
        yield ""
        yield f"{_cell(run.name)} as Dr. Kernel scores, {title} of each trajectory: {said}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
