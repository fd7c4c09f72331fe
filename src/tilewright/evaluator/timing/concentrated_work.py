"""Work of many calls that a candidate does in a few of them. Pure functions of data.

A speed-up is a median over blocks, which forgives a few long calls: an honest one may have been
disturbed. But a candidate may write the zeros of sixteen outputs in one call, so that fifteen calls
have less to do. The means of both implementations show all of its work (ADR 72).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.scoring import bootstrap, intervals

LONG = 1.5
"""Ratio to the median call from which on a call is a long one."""
MIN_LONG_CALLS = 2
"""Long calls from which on the speed-up itself counts them: one call may have been disturbed."""
MIN_GAP, CERTAIN_GAP = 0.02, 0.1
"""Logarithm of the median ratio over the quotient of the means. From the first one on the lower end
of the interval follows the means, from the second one on the speed-up itself. Of 76 A/A runs on a
CPU that others used too, 95 % were below 0.03, and the largest was 0.08."""


@dataclass(frozen=True)
class ConcentratedWork:
    """By what factors long calls of a candidate lower its speed-up; 1: not at all."""

    on_low: float = 1.0
    """For the lower end of the interval."""
    on_estimate: float = 1.0
    """For the speed-up: not for one call that was disturbed. The upper end stays, so that no honest
    candidate on a busy machine looks slower."""


def concentrated_work(blocks: Sequence[Sequence[float]]) -> ConcentratedWork:
    """Compare the median over blocks with the quotient of the mean times.

    A block is `(baseline, candidate, candidate, baseline)`, by the judge's clock: a candidate's own
    could leave out its long calls.
    """
    theirs, ours = ([row[i] for row in blocks for i in places] for places in ((0, 3), (1, 2)))
    typical = bootstrap.median(intervals.paired_log_ratios(blocks))
    gap = typical - math.log(sum(theirs) / sum(ours))
    if gap <= MIN_GAP:
        return ConcentratedWork()
    limit = LONG * bootstrap.median(ours)
    certain = gap > CERTAIN_GAP and sum(call > limit for call in ours) >= MIN_LONG_CALLS
    return ConcentratedWork(math.exp(-gap), math.exp(-gap) if certain else 1.0)
