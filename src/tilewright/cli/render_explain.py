"""The long view of a report: every stage, check, input sample, block and isolation layer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from tilewright.cli import render
from tilewright.cli.output import printable
from tilewright.cli.render import facts, table
from tilewright.records import CaseResult, Comparison, EvalReport, Finding, KernelTime, Profile
from tilewright.records.codes import LabelName
from tilewright.reports.glossary import terms_of
from tilewright.scoring import bootstrap
from tilewright.scoring.bottlenecks import advice, launched_shapes
from tilewright.scoring.occupancy import occupancy
from tilewright.scoring.report_text import engineering, finding_text, known, short_time
from tilewright.scoring.roofline import RooflinePoint, roofline_points

MAX_PRINTED_LINES = 40
"""Most lines of the candidate's output that are shown."""
PERCENTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class CheckSeen:
    """One check that ran: its name, its description and its findings."""

    name: str
    about: str
    findings: tuple[Finding, ...]


SPREAD_NOTE = (
    "A speed-up compares neighbouring calls. The 50 % of all calls of each can have another "
    "quotient, if the machine's speed changed meanwhile."
)
"""Why the medians of all calls may disagree with a speed-up."""


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


def explain_view(report: EvalReport, checks: Sequence[CheckSeen], script: str) -> RenderableType:
    """Return the whole content of a report. `script` describes the script, or its absence."""
    points, limits, printed = roofline_points(report), advice(report), report.candidate_output
    stages = ((i.name, short_time(i.wall_s * 1e6), i.detail) for i in report.stages)
    outcome = report.outcome.model_dump(mode="json", exclude={"findings"}, exclude_none=True)
    layers = ((i.name, "yes" if i.active else "no", i.detail) for i in report.isolation)
    sections: dict[str, RenderableType | None] = {
        "Outcome": facts((name, str(value)) for name, value in outcome.items()),
        "Stages": table("stage", "wall time", "", rows=stages, right=(1,)),
        "Input samples": _samples(report.cases),
        "Timing": _timing(report),
        "Roofline": _roofline(points) if points else None,
        "What limits it": Text("\n".join(limits)) if limits else None,
        "Own kernels": _profile(report.profile) if report.profile is not None else None,
        "Kernels of one call": _kernels(report.kernels) if report.kernels else None,
        "Launch shapes": _shapes(report),
        "Checks": _checks(report, checks),
        "Isolation": table("layer", "active", "", rows=layers),
        "Environment": _environment(report),
        "Output of the candidate": Text(_printed(printed)) if printed else None,
        "Reproducer": Text(printable(script)),
        "Terms": facts(terms.items()) if (terms := terms_of(report)) else None,
    }
    parts: list[RenderableType] = [render.report_view(report)]
    for title, content in sections.items():
        if content is not None:
            parts += ["", Text(title, style="bold"), Padding(content, (0, 0, 0, 2))]
    return Group(*parts)


def _samples(cases: Sequence[CaseResult]) -> RenderableType:
    made = table("case", "input variation", "verdict", "error", "against", "seed", "")
    for item in cases:
        error = known("{:.3g}", item.error_over_tolerance)
        head = (item.case, item.input_variation, item.result, error)
        made.add_row(*head, item.oracle, item.seed, item.detail)
    note = f"{render.outputs_text(cases)}. An error is a multiple of the tolerance."
    return Group(made, Text(note, style="dim"))


def _timing(report: EvalReport) -> RenderableType:
    if not report.comparisons:
        labels = [item.detail for item in report.labels if item.name == LabelName.NOT_TIMED]
        return Text(labels[0] if labels else "Nothing was timed.")
    heads = ("case", "against", "blocks", "of", *(f"{q:.0%}" for q in PERCENTILES))
    spreads = [row for item in report.comparisons for row in _spread_rows(item)]
    return Group(
        render.comparisons_table(report.comparisons),
        "",
        table(*heads, rows=spreads),
        Text(SPREAD_NOTE, style="dim"),
        Text(render.timed_text(report), style="dim"),
    )


def _spread_rows(item: Comparison) -> Iterator[Sequence[object]]:
    spread = spread_of(item)
    if spread is not None:
        times = map(short_time, spread.reference_us)
        yield spread.case, spread.baseline, spread.blocks, "baseline", *times
        yield "", "", "", "candidate", *map(short_time, spread.candidate_us)
        yield "", "", "", "speed-up", *(f"{value:.3f}" for value in spread.ratios)


def _roofline(points: Sequence[RooflinePoint]) -> RenderableType:
    made = table("case", "limit", "least", "it took", "caller", "batch", "of light", "moving", "")
    for item in points:
        took = item.comparison.candidate
        computing = "" if item.flops_per_s is None else engineering(item.flops_per_s, "FLOP/s")
        times = (item.least_us, item.candidate_us, took.call_latency_us, took.back_to_back_us)
        cells = ["" if time_us is None else short_time(time_us) for time_us in times]
        cells += [f"{item.candidate_share:.0%}", engineering(item.bytes_per_s, "B/s"), computing]
        made.add_row(item.case, item.limit, *cells)
    note = (
        "Least: the time at the ceilings measured on this device. Caller: the latency of a call in "
        "Python. Batch: one of many calls back to back, with warm caches. No counters of memory "
        "traffic are read."
    )
    return Group(made, Text(note, style="dim"))


def _profile(made: Profile) -> RenderableType:
    saved = known("{:.0%}", made.suppressed_share) or "it fails without them"
    own = f"{made.self_reported_share:.0%}, by the candidate's own events"
    return facts(
        [
            ("case", made.case),
            ("own launches per call", str(made.launches)),
            ("device time in them", own),
            ("saved without them", f"{saved}, by the judge's"),
            ("coverage", f"{made.coverage:.0%}"),
        ]
    )


def _kernels(kernels: Sequence[KernelTime]) -> RenderableType:
    total = sum(item.total_us for item in kernels) or 1.0
    made = table("time", "of all", "launches", "origin", "kernel", right=(0, 1, 2))
    for item in kernels:
        head = (short_time(item.total_us), f"{item.total_us / total:.0%}", item.launches)
        made.add_row(*head, "library" if item.library else "own", item.name)
    note = "Measured by torch's profiler in the candidate's process; origin by the kernel's name."
    return Group(made, Text(note, style="dim"))


def _shapes(report: EvalReport) -> RenderableType | None:
    made = table(
        "kernel", "blocks", "threads", "registers", "spilled", "shared", "tensor cores", "occupancy"
    )
    for item in launched_shapes(report):
        found = occupancy(item, str(report.environment.host.get("arch", "")))
        sizes = [
            engineering(size, "B") if size is not None else ""
            for size in (item.spilled_bytes, item.shared_bytes)
        ]
        tensor_cores = {True: "yes", False: "no", None: ""}[item.tensor_cores]
        fits = f"{found.share:.0%}, by {found.limited_by}" if found else ""
        registers = known("{}", item.registers)
        made.add_row(item.name, item.blocks, item.threads, registers, *sizes, tensor_cores, fits)
    note = (
        "Registers and spilled bytes of a thread, shared memory of a block, by the compiler. "
        "Occupancy: the share of a multiprocessor's warps that fit at once, and their limit."
    )
    return Group(made, Text(note, style="dim")) if made.row_count else None


def _checks(report: EvalReport, checks: Sequence[CheckSeen]) -> RenderableType:
    made = table("check", "findings")
    for check in checks:
        if not check.findings:
            made.add_row(check.name, Text(f"none. {check.about}", style="dim"))
        for finding in check.findings:
            made.add_row(check.name, finding_text(finding))
            evidence = json.dumps(finding.evidence, sort_keys=True)
            made.add_row("", Text(printable(f"{finding.code}: {evidence}"), style="dim"))
    for label in report.labels:
        made.add_row("(label)", f"{label.name}: {label.detail}")
    return made


def _environment(report: EvalReport) -> RenderableType:
    where = report.environment
    rows = [("device", f"{where.device}: {where.device_name}")]
    rows += [(name, str(value)) for name, value in where.host.items()]
    rows += [*where.versions.items(), ("judged by", f"tilewright {report.evaluator}")]
    return facts([*rows, ("root seed", report.seed)])


def _printed(text: str) -> str:
    lines = printable(text).splitlines()
    if len(lines) > MAX_PRINTED_LINES:
        more = f"({len(lines) - MAX_PRINTED_LINES} more lines in the report)"
        lines[MAX_PRINTED_LINES:] = [more]
    return "\n".join(lines)
