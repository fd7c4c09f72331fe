"""The changes between two runs, problem by problem. Pure.

The best candidate of a problem counts in each run: a correct one with the largest speed-up, or the
first one if none is correct. The ratio of two speed-ups has the interval of two independent
estimates: the half-widths of their logarithms add up as squares.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from tilewright.records.events import EvalSummary, Turn
from tilewright.scoring.intervals import Interval, decide


class Change(StrEnum):
    """The change of a problem; the order is that of the lists, the worst first."""

    BROKE = "broke"
    SLOWER = "slower"
    REMOVED = "no longer judged"
    UNJUDGED = "no verdict now"
    BECAME_CORRECT = "became correct"
    FASTER = "faster"
    ADDED = "new"
    SAME = "no measurable change"


REGRESSIONS = (Change.BROKE, Change.SLOWER, Change.REMOVED, Change.UNJUDGED)
"""Changes on which `compare --fail-on-regression` fails."""


@dataclass(frozen=True)
class Standing:
    """The best candidate of a problem in a run."""

    candidate: str
    verdict: str
    reason: str
    speedup: float | None
    low: float | None
    high: float | None

    @property
    def is_correct(self) -> bool:
        """Whether the candidate is correct."""
        return self.verdict == "correct"


@dataclass(frozen=True)
class ProblemChange:
    """One problem in both runs; `None`: it has no candidate there."""

    problem: str
    change: Change
    before: Standing | None
    after: Standing | None
    ratio: float | None = None
    """The speed-up after over that before, with its 95 % interval."""
    low: float | None = None
    high: float | None = None


def standings(turns: Iterable[Turn], protocol: str) -> dict[str, Standing]:
    """Return the best candidate of each problem by one protocol."""
    found: dict[str, Standing] = {}
    for turn in turns:
        for item in turn.judgements:
            if item.protocol != protocol:
                continue
            new = standing_of(turn.ask.id, item)
            known = found.get(turn.ask.problem)
            if known is None or _rank(new) > _rank(known):
                found[turn.ask.problem] = new
    return found


def standing_of(candidate: str, item: EvalSummary) -> Standing:
    """Return the standing of one candidate."""
    return Standing(candidate, item.verdict, item.reason, item.speedup, item.low, item.high)


def changes(
    before: Mapping[str, Standing], after: Mapping[str, Standing], *, timed: bool = True
) -> list[ProblemChange]:
    """Return a row for each problem of either run, the worst changes first.

    `timed` tells whether the times of both runs may be compared: not between two devices.
    """
    names = dict.fromkeys((*before, *after))
    rows = [_change(name, before.get(name), after.get(name), timed=timed) for name in names]
    order = list(Change)
    return sorted(rows, key=lambda row: (order.index(row.change), row.problem))


def _rank(item: Standing) -> tuple[bool, float]:
    return item.is_correct, (item.speedup or 0.0) if item.is_correct else 0.0


def _change(
    problem: str, before: Standing | None, after: Standing | None, *, timed: bool
) -> ProblemChange:
    if before is None or after is None:
        change = Change.ADDED if before is None else Change.REMOVED
        return ProblemChange(problem, change, before, after)
    if after.verdict == "unjudged" != before.verdict:
        return ProblemChange(problem, Change.UNJUDGED, before, after)
    if before.is_correct != after.is_correct:
        change = Change.BECAME_CORRECT if after.is_correct else Change.BROKE
        return ProblemChange(problem, change, before, after)
    ratio = _ratio(before, after) if timed and after.is_correct else None
    if ratio is None:
        return ProblemChange(problem, Change.SAME, before, after)
    decided = decide(ratio)
    change = {"faster": Change.FASTER, "slower": Change.SLOWER}.get(decided, Change.SAME)
    return ProblemChange(problem, change, before, after, ratio.estimate, ratio.low, ratio.high)


def _ratio(before: Standing, after: Standing) -> Interval | None:
    """Return the ratio of two speed-ups; `None` if one has no interval."""
    one, two = _logs(before), _logs(after)
    if one is None or two is None:
        return None
    middle = two[1] - one[1]
    # A smaller ratio has a larger speed-up before, or a smaller one after.
    down = math.hypot(two[1] - two[0], one[2] - one[1])
    up = math.hypot(two[2] - two[1], one[1] - one[0])
    return Interval(math.exp(middle), math.exp(middle - down), math.exp(middle + up))


def _logs(item: Standing) -> tuple[float, float, float] | None:
    if item.speedup is None or item.low is None or item.high is None:
        return None
    return math.log(item.low), math.log(item.speedup), math.log(item.high)
