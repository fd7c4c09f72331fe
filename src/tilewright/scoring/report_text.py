"""Texts of a report: the reason for its verdict, its speed-up, and numbers with units."""

from __future__ import annotations

import math
import re

from tilewright.records import Correct, EvalReport, Failed, Finding, Incorrect, Rejected, Unjudged
from tilewright.records.codes import FailureReason
from tilewright.records.problem import BY_SUMS
from tilewright.scoring.intervals import Interval, decide

_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
"""Decimal prefixes, the largest first."""


COMPILER_ERROR = re.compile(r"\b(fatal )?error( [A-Z]?\d+)?: ")
"""How compilers mark an error; lines before it name the function around it."""
NOT_CERTAIN = "not certain"
"""Said of an interval that does not contain 1 and is too wide to be believed."""


def speed_text(speedup: float, low: float | None, high: float | None) -> str:
    """Return a speed-up with its interval, or the interval alone if it shows no difference.

    Exact times, as those of a synthetic landscape, have no interval.
    A wide interval without 1 that decides nothing is marked as not certain (`intervals.decide`).
    """
    shown = ratio_text(speedup, low, high)
    if low is None or high is None or low == high == speedup != 1.0:
        return shown
    decided = decide(Interval(speedup, low, high))
    if decided != "no measurable difference":
        return shown
    if low <= 1 <= high:
        return f"{decided} {shown[shown.index('[') :]}"
    return f"{shown}, {NOT_CERTAIN}"


def ratio_text(ratio: float, low: float | None, high: float | None) -> str:
    """Return a ratio of times or of speed-ups with its interval, whatever the interval shows."""
    if low is None or high is None:
        return f"{_ratio(ratio, ratio)}x, no interval"
    if low == high == ratio != 1.0:
        return f"{_ratio(ratio, ratio)}x"
    ends = [value for value in (low, high) if value != 1.0]
    fine = max((abs(value - 1) for value in ends), default=0.0) + 1
    return f"{_ratio(ratio, fine)}x [{_ratio(low, fine)}, {_ratio(high, fine)}]"


def _ratio(value: float, scale: float) -> str:
    """Return a ratio as text; near 1 three decimals show whether it is above or below.

    Below 0.1 two digits are left, so that no slow candidate has the speed 0.00.
    """
    if 0.9 < scale < 1.1:
        return f"{value:.3f}"
    if value < 0.1:
        return f"{value:.{1 - math.floor(math.log10(value))}f}"
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def over_cases(report: EvalReport) -> str:
    """Return the baseline of a report's speed-up, and how the cases were put together."""
    first = report.request.baselines[0].name if report.request.baselines else ""
    count = sum(item.baseline == first for item in report.comparisons)
    if count < 2:
        return first
    sums = report.request.protocol == "official"
    by_sums = sums and report.request.problem.official_comparison in BY_SUMS
    how = "the sums" if by_sums else "geometric mean"
    return f"{first}, {how} of {count} cases"


def reason_of(report: EvalReport) -> str:
    """Return the reason of the verdict in one line."""
    match outcome := report.outcome:
        case Correct():
            return ", ".join(dict.fromkeys(label.name for label in report.labels))
        case Incorrect():
            return cut(f"{outcome.kind} ({outcome.case}): {outcome.message}")
        case Failed():
            return cut(f"{failure_text(outcome)}: {_telling(outcome)}")
        case Rejected():
            return cut("; ".join(item.summary for item in outcome.findings))
        case Unjudged():
            return cut(f"{outcome.reason}: {_first(outcome.message)}")


def failure_text(failed: Failed) -> str:
    """Return the reason of a failure and its stage, once if both have one name."""
    same = failed.reason.value == failed.stage.value
    return str(failed.reason) if same else f"{failed.reason} in {failed.stage}"


def finding_text(finding: Finding) -> str:
    """Return a finding in one line."""
    weight = "decisive: " if finding.weight == "decisive" else ""
    return f"{weight}{finding.check}: {finding.summary}"


def _telling(failed: Failed) -> str:
    """Return the line of a message that tells most: a compiler's first error, else the first."""
    lines = failed.message.strip().split("\n")
    if failed.reason == FailureReason.BUILD:
        return next(filter(COMPILER_ERROR.search, lines), lines[0])
    return lines[0]


def _first(text: str) -> str:
    return text.strip().partition("\n")[0]


def cut(text: str, length: int = 300) -> str:
    """Return a text as one line of at most `length` characters."""
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 3] + "..."


def engineering(value: float, unit: str) -> str:
    """Return a number with three digits and a decimal prefix."""
    for limit, prefix in _PREFIXES:
        if value >= limit:
            return f"{value / limit:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"


def short_time(microseconds: float) -> str:
    """Return a time in us, ms or s, with three digits."""
    for limit, unit in ((1e3, "us"), (1e6, "ms")):
        if microseconds < limit:
            return f"{microseconds / (limit / 1e3):.3g} {unit}"
    return f"{microseconds / 1e6:.3g} s"


def known(template: str, *values: float | None) -> str:
    """Return the template with the values, or an empty text if one of them is unknown."""
    return "" if None in values else template.format(*values)
