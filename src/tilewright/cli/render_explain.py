"""The long view of a report: every stage, check, input sample, block and isolation layer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tilewright.cli.output import printable
from tilewright.cli.render import (
    comparisons_table,
    facts,
    finding_text,
    outputs_text,
    report_view,
    table,
    timed_text,
)
from tilewright.records import CaseResult, Comparison, EvalReport, Finding, KernelTime, Profile
from tilewright.scoring import bootstrap
from tilewright.scoring.bottlenecks import advice
from tilewright.scoring.report_text import engineering, short_time
from tilewright.scoring.roofline import roofline_points

MAX_PRINTED_LINES = 40
"""Most lines of the candidate's output that are shown."""
PERCENTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class CheckSeen:
    """One check that ran: its name, its description and its findings."""

    name: str
    about: str
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class Spread:
    """Percentiles of the calls of one comparison."""

    case: str
    baseline: str
    blocks: int
    reference_us: tuple[float, ...]
    """Percentiles 5, 25, 50, 75 and 95 of the baseline's calls."""
    candidate_us: tuple[float, ...]
    ratios: tuple[float, ...]
    """The same percentiles of the blocks' speed-ups."""


def spread_of(item: Comparison) -> Spread | None:
    """Return the percentiles of a comparison, or `None` if the report has no raw times."""
    rows = [row for row in item.raw_us if len(row) == 4]
    if not rows:
        return None
    reference = [value for row in rows for value in (row[0], row[3])]
    candidate = [value for row in rows for value in (row[1], row[2])]
    ratios = [((row[0] * row[3]) / (row[1] * row[2])) ** 0.5 for row in rows]
    found = [
        tuple(bootstrap.quantile(values, q) for q in PERCENTILES)
        for values in (reference, candidate, ratios)
    ]
    return Spread(item.case, item.baseline, len(rows), *found)


def explain_view(
    report: EvalReport, checks: Sequence[CheckSeen], reproducer: str
) -> RenderableType:
    """Return the whole content of a report. `reproducer` describes the script, or its absence."""
    parts: list[RenderableType] = [report_view(report)]
    parts += _section("Outcome", _outcome(report))
    parts += _section("Stages", _stages(report))
    parts += _section("Input samples", _draws(report.cases))
    parts += _section("Timing", _timing(report))
    if roofline_points(report):
        parts += _section("Roofline", _lights(report))
    if said := advice(report):
        parts += _section("What limits it", Text("\n".join(said)))
    if report.profile is not None:
        parts += _section("Own kernels", _profile(report.profile))
    if report.kernels:
        parts += _section("Kernels of one call", _kernels(report.kernels))
    parts += _section("Checks", _checks(report, checks))
    parts += _section("Isolation", _layers(report))
    parts += _section("Environment", _environment(report))
    if report.candidate_output:
        parts += _section("Output of the candidate", Text(_printed(report.candidate_output)))
    parts += _section("Reproducer", Text(printable(reproducer)))
    return Group(*parts)


def _section(title: str, content: RenderableType) -> list[RenderableType]:
    return [Text(""), Text(title, style="bold"), Padding(content, (0, 0, 0, 2))]


def _outcome(report: EvalReport) -> RenderableType:
    fields = report.outcome.model_dump(mode="json", exclude={"findings"})
    rows = [(name, str(value)) for name, value in fields.items() if value is not None]
    return facts(rows)


def _stages(report: EvalReport) -> RenderableType:
    made = table("stage", "wall time", "", right=(1,))
    for stage in report.stages:
        made.add_row(stage.name, short_time(stage.wall_s * 1e6), Text(stage.detail))
    return made


def _draws(cases: Sequence[CaseResult]) -> RenderableType:
    made = table("case", "input variation", "verdict", "error", "against", "seed", "")
    for item in cases:
        error = "" if item.error_over_tolerance is None else f"{item.error_over_tolerance:.3g}"
        detail = Text(printable(item.detail))
        made.add_row(
            item.case, item.input_variation, item.result, error, item.oracle, item.seed, detail
        )
    note = f"{outputs_text(cases)}. An error is a multiple of the tolerance."
    return Group(made, Text(note, style="dim"))


def _timing(report: EvalReport) -> RenderableType:
    if not report.comparisons:
        labels = [item.detail for item in report.labels if item.name == "not_timed"]
        return Text(labels[0] if labels else "Nothing was timed.")
    spreads = table("case", "against", "blocks", "of", *(f"{q:.0%}" for q in PERCENTILES))
    for item in report.comparisons:
        spread = spread_of(item)
        if spread is not None:
            _add_spread(spreads, spread)
    return Group(
        comparisons_table(report.comparisons),
        Text(""),
        spreads,
        Text(timed_text(report), style="dim"),
    )


def _lights(report: EvalReport) -> RenderableType:
    made = table("case", "limit", "least", "it took", "caller", "batch", "of light", "moving", "")
    for item in roofline_points(report):
        took = item.comparison.candidate
        computing = "" if item.flops_per_s is None else engineering(item.flops_per_s, "FLOP/s")
        made.add_row(
            Text(item.case),
            item.limit,
            short_time(item.least_us),
            short_time(took.median_us),
            "" if took.call_latency_us is None else short_time(took.call_latency_us),
            "" if took.back_to_back_us is None else short_time(took.back_to_back_us),
            f"{item.candidate_share:.0%}",
            engineering(item.bytes_per_s, "B/s"),
            computing,
        )
    note = (
        "Least: the time at the ceilings measured on this device. Caller: the latency of a call in "
        "Python. Batch: one of many calls back to back, with warm caches. No counters of memory "
        "traffic are read."
    )
    return Group(made, Text(note, style="dim"))


def _profile(made: Profile) -> RenderableType:
    saved = (
        "it fails without them" if made.suppressed_share is None else f"{made.suppressed_share:.0%}"
    )
    return facts(
        [
            ("case", made.case),
            ("own launches per call", str(made.launches)),
            (
                "device time in them",
                f"{made.self_reported_share:.0%}, by the candidate's own events",
            ),
            ("saved without them", f"{saved}, by the judge's"),
            ("coverage", f"{made.coverage:.0%}"),
        ]
    )


def _kernels(kernels: Sequence[KernelTime]) -> RenderableType:
    total = sum(item.total_us for item in kernels) or 1.0
    made = table("time", "of all", "launches", "origin", "kernel", right=(0, 1, 2))
    for item in kernels:
        made.add_row(
            short_time(item.total_us),
            f"{item.total_us / total:.0%}",
            str(item.launches),
            "library" if item.library else "own",
            Text(printable(item.name)),
        )
    note = "Measured by torch's profiler in the candidate's process; origin by the kernel's name."
    return Group(made, Text(note, style="dim"))


def _add_spread(made: Table, spread: Spread) -> None:
    rows = (
        ("baseline", [short_time(value) for value in spread.reference_us]),
        ("candidate", [short_time(value) for value in spread.candidate_us]),
        ("speed-up", [f"{value:.3f}" for value in spread.ratios]),
    )
    for number, (name, values) in enumerate(rows):
        head = (spread.case, spread.baseline, str(spread.blocks)) if number == 0 else ("", "", "")
        made.add_row(*head, name, *values)


def _checks(report: EvalReport, checks: Sequence[CheckSeen]) -> RenderableType:
    made = table("check", "findings")
    for check in checks:
        if not check.findings:
            made.add_row(check.name, Text(f"none. {check.about}", style="dim"))
        for finding in check.findings:
            made.add_row(check.name, Text(printable(finding_text(finding))))
            evidence = json.dumps(finding.evidence, sort_keys=True)
            made.add_row("", Text(printable(f"{finding.code}: {evidence}"), style="dim"))
    for label in report.labels:
        made.add_row("(label)", Text(printable(f"{label.name}: {label.detail}")))
    return made


def _layers(report: EvalReport) -> RenderableType:
    made = table("layer", "active", "")
    for item in report.isolation:
        made.add_row(item.name, "yes" if item.active else "no", Text(printable(item.detail)))
    return made


def _environment(report: EvalReport) -> RenderableType:
    where = report.environment
    rows = [("device", f"{where.device}: {where.device_name}")]
    rows += [(name, str(value)) for name, value in where.host.items()]
    rows += [(name, value) for name, value in where.versions.items()]
    rows += [("judged by", f"tilewright {report.evaluator}"), ("root seed", report.seed)]
    return facts(rows)


def _printed(text: str) -> str:
    lines = printable(text).splitlines()
    kept = lines[:MAX_PRINTED_LINES]
    if len(lines) > len(kept):
        kept.append(f"({len(lines) - len(kept)} more lines in the report)")
    return "\n".join(kept)
