"""Times to show next to a speed-up: their quotient is the speed-up.

A speed-up is an estimate over pairs of neighbouring calls, and a median is over all calls of one
implementation. On a machine that changes its speed, the quotient of two medians differs from the
estimate over pairs. So both medians are multiplied, one with f and the other with 1 / f, until
their quotient is the speed-up. Their geometric mean stays as it was measured.

Times are in microseconds. tests/property/test_paired_times.py has the properties.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.records import Comparison


@dataclass(frozen=True, slots=True)
class PairedTimes:
    """The times of one call of a baseline and of the candidate."""

    baseline_us: float
    candidate_us: float


def paired(baseline_us: float, candidate_us: float, speedup: float) -> PairedTimes:
    """Return times in the proportion of a speed-up, with the geometric mean of those given."""
    middle, side = math.sqrt(baseline_us * candidate_us), math.sqrt(speedup)
    return PairedTimes(middle * side, middle / side)


def paired_times(item: Comparison) -> PairedTimes:
    """Return the times to show for a comparison; of an older report they are computed now."""
    if item.baseline_us is not None and item.candidate_us is not None:
        return PairedTimes(item.baseline_us, item.candidate_us)
    return paired(item.baseline_timing.median_us, item.candidate.median_us, item.speedup)


def geometric_mean_times(items: Sequence[Comparison]) -> PairedTimes:
    """Return the geometric means over cases, whose quotient is that of the speed-ups."""
    times = [paired_times(item) for item in items]
    return PairedTimes(
        math.exp(math.fsum(math.log(one.baseline_us) for one in times) / len(times)),
        math.exp(math.fsum(math.log(one.candidate_us) for one in times) / len(times)),
    )
