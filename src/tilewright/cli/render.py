"""Views of records: pure functions that return renderables of rich, or text."""

from __future__ import annotations

import io
import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import click
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from tilewright.cli.output import printable
from tilewright.records import (
    CaseResult,
    Comparison,
    Correct,
    EvalReport,
    Incorrect,
    IsolationStatus,
    Verdict,
)
from tilewright.records.codes import FindingCode, LabelName
from tilewright.scoring.bottlenecks import MIN_LEAST_US
from tilewright.scoring.paired_times import paired_times
from tilewright.scoring.report_text import (
    cut,
    finding_text,
    over_cases,
    reason_of,
    short_time,
    speed_text,
)
from tilewright.scoring.roofline import RooflinePoint, roofline_points

STYLES: dict[Verdict, str] = {
    "correct": "bold green",
    "incorrect": "bold red",
    "failed": "bold red",
    "rejected": "bold magenta",
    "unjudged": "bold yellow",
}
FIT = "`tilewright doctor --calibrate` fits the intervals to this machine"
EXPLAINED: dict[str, str] = {LabelName.UNCALIBRATED: f": {FIT}"}
PIPE_WIDTH = 110
"""Columns of output that is not a terminal."""
MAX_DETAIL = 80
"""Most characters of the reason for which an input variation was skipped."""


@dataclass(frozen=True)
class Row:
    name: str
    problem: str
    verdict: Verdict
    speed: str
    why: str
    as_expected: bool | None = None
    """Whether the verdict is the expected one; `None`: none was expected."""


def show(renderable: RenderableType) -> None:
    """Print to standard output, in colour on a terminal."""
    if sys.stdout.isatty():
        Console(highlight=False, markup=False).print(renderable)
    else:
        click.echo(to_text(renderable), nl=False)


def show_result(as_json: bool, document: object, view: RenderableType) -> None:
    """Print a JSON document, or the view of the same content."""
    if as_json:
        click.echo(json.dumps(document, indent=1))
    else:
        show(view)


def to_text(renderable: RenderableType, width: int = PIPE_WIDTH) -> str:
    """Return the rendered text without colours and without trailing spaces."""
    plain: dict[str, Any] = {"color_system": None, "highlight": False, "markup": False}
    console = Console(file=io.StringIO(), width=width, **plain)
    with console.capture() as capture:
        console.print(renderable)
    return "".join(f"{line.rstrip()}\n" for line in capture.get().splitlines())


class PlainTable(Table):
    """A table whose cells are text without markup, emoji and control characters."""

    def add_row(self, *cells: object, **extra: Any) -> None:  # noqa: ANN401 - rich's
        shown = (c if isinstance(c, Text) else Text(printable(str(c))) for c in cells)
        super().add_row(*shown, **extra)


def table(
    *head: str,
    rows: Iterable[Iterable[object]] = (),
    right: Iterable[int] = (),
    wrap: Iterable[int] = (),
) -> PlainTable:
    """Return a table without lines; columns in `right` are flush right.

    Long cells of the last column and of those in `wrap` continue on the next line.
    """
    folded = {len(head) - 1, *wrap}
    made = PlainTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for number, name in enumerate(head):
        made.add_column(name, overflow="fold", no_wrap=number not in folded)
        if number in right:
            made.columns[number].justify = "right"
    for row in rows:
        made.add_row(*row)
    return made


def facts(pairs: Iterable[tuple[str, str]]) -> Table:
    """Return a table of names and values. Rows without a value are left out."""
    made = PlainTable.grid(padding=(0, 2, 0, 0))
    made.add_column(style="dim", no_wrap=True)
    made.add_column(overflow="fold")
    for name, value in pairs:
        if value:
            made.add_row(name, value)
    return made


def speed_of(report: EvalReport) -> str:
    """Return the speed-up over all cases. It is empty for a candidate that is not correct."""
    if report.speedup is not None:
        return speed_text(report.speedup, report.speedup_low, report.speedup_high)
    return "untimed" if isinstance(report.outcome, Correct) else ""


def short_reason(report: EvalReport) -> str:
    """Return the reason of the verdict in a few words."""
    outcome = report.outcome
    if isinstance(outcome, Incorrect):
        return printable(cut(f"{outcome.case}: {outcome.message.partition(';')[0]}", 120))
    return printable(cut(reason_of(report), 120))


def reason(report: EvalReport) -> str:
    return printable(reason_of(report))


def judged(report: EvalReport) -> str:
    """Return the problem, the candidate, the protocol and the device in one line."""
    request = report.request
    files = request.candidate.files
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    what = f"{request.problem.id} by {files[0].path}{more} ({request.candidate.language})"
    return f"{what}, {request.protocol}, on {report.environment.device}"


def _layers_text(layers: Sequence[IsolationStatus]) -> str:
    off = [f"{item.name} ({item.detail})" for item in layers if not item.active]
    if not off:
        return f"all {len(layers)} layers active" if layers else "no process was started"
    return f"{len(layers) - len(off)} of {len(layers)} layers active; not: {'; '.join(off)}"


def report_view(report: EvalReport) -> Group:
    head = Text(report.verdict, style=STYLES[report.verdict])
    head.append(f"  {judged(report)}", style="default not bold")
    parts: list[RenderableType] = [head]
    why = reason(report)
    if why and not isinstance(report.outcome, Correct):
        parts.append(Text(f"  {why}"))
    if report.comparisons:
        parts += ["", comparisons_table(report.comparisons)]
    return Group(*parts, "", facts(_summary(report)))


def comparisons_table(comparisons: Sequence[Comparison]) -> Table:
    shared = _shared_labels(comparisons)
    made = table("case", "baseline", "time", "candidate time", "speed-up", "", "labels")
    for item in comparisons:
        speed = speed_text(item.speedup, item.speedup_low, item.speedup_high)
        # The text of the speed-up says so itself, and the labels need the room.
        decided = "" if item.conclusion == "no measurable difference" else item.conclusion
        shown = paired_times(item)
        times = map(short_time, (shown.baseline_us, shown.candidate_us))
        labels = ", ".join(label for label in item.labels if label not in shared)
        made.add_row(item.case, item.baseline, *times, speed, decided, labels)
    return made


def _shared_labels(comparisons: Sequence[Comparison]) -> tuple[str, ...]:
    first = comparisons[0].labels if comparisons else ()
    return tuple(name for name in first if all(name in item.labels for item in comparisons))


def _summary(report: EvalReport) -> list[tuple[str, str]]:
    overall, shared = "", _shared_labels(report.comparisons)
    if report.speedup is not None:
        overall = f"{speed_of(report)} (against {over_cases(report)})"
    rows: list[tuple[str, str]] = [
        ("speed-up", overall),
        ("outputs", outputs_text(report.cases)),
        ("timed calls", timed_text(report)),
        *(("all times", f"{name}{EXPLAINED.get(name, '')}") for name in shared),
    ]
    points = (item for item in roofline_points(report) if item.least_us >= MIN_LEAST_US)
    rows += [("roofline", _light_text(item)) for item in points]
    rows += [("label", f"{label.name}: {label.detail}") for label in report.labels]
    rows += [("finding", finding_text(finding)) for finding in report.findings]
    rows.append(("isolation", _layers_text(report.isolation)))
    if report.candidate_output:
        rows.append(("output", f"{len(report.candidate_output)} characters; explain shows them"))
    return rows


def _light_text(item: RooflinePoint) -> str:
    took = item.comparison.candidate
    said = f"{item.case}: {item.candidate_share:.0%}, limited by {item.limit}"
    if took.call_latency_us:
        said += f"; a Python caller waits {short_time(took.call_latency_us)}"
    return said


def outputs_text(cases: Sequence[CaseResult]) -> str:
    """Return the number of correct input samples, and the largest error among them."""
    counts = Counter(item.result for item in cases)
    if not cases:
        return "no output was compared"
    shown = f"{counts['pass']} of {counts['pass'] + counts['fail']} correct"
    measured = [item for item in cases if item.error_over_tolerance is not None]
    if measured:
        worst = max(measured, key=lambda item: item.error_over_tolerance or 0.0)
        shown += (
            f", at most {worst.error_over_tolerance:.2g} of the tolerance "
            f"({worst.case}, {worst.input_variation}; {worst.oracle})"
        )
    varied = [item for item in cases if item.input_variation != "nominal"]
    if varied:
        skipped = [item for item in varied if item.result == "skipped"]
        shown += f"; {len(varied) - len(skipped)} of {len(varied)} variations"
        if skipped:
            first = skipped[0]
            where = f"{first.case}, {first.input_variation}"
            why = f": {cut(first.detail, MAX_DETAIL)}" if first.detail else ""
            shown += f", {len(skipped)} skipped ({where}{why})"
    return shown


def timed_text(report: EvalReport) -> str:
    """Return the result of comparing the outputs of timed calls."""
    for item in report.findings:
        if item.code == FindingCode.INCORRECT_WHEN_TIMED:
            return item.summary
    if not report.comparisons:
        return ""
    calls = {item.case: item.candidate.samples for item in report.comparisons}
    number = f"{sum(calls.values())} of the candidate"
    if report.request.protocol == "official":
        return f"{number}, one input sample per case, no output compared (the published rule)"
    return f"{number}, with new inputs in each; every compared output was correct"


def rows_table(rows: Sequence[Row]) -> Table:
    made = table("candidate", "problem", "verdict", "speed-up, or why not")
    for row in rows:
        verdict = Text(row.verdict, style=STYLES[row.verdict])
        if row.as_expected is False:
            verdict.append(" (unexpected)", style="reverse")
        why = "; ".join(filter(None, (row.speed, row.why)))
        made.add_row(row.name, row.problem, verdict, why)
    return made
