"""What several pairs of processes say together."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilewright.scoring.statistics import (
    Interval,
    bootstrap_median_interval,
    from_logs,
    median,
    speedup_interval,
)

__all__ = ["pairs_interval"]

PRIOR_FREEDOM = 4
"""How many degrees of freedom the scatter that is known beforehand counts for."""
TYPICAL = 0.5
"""The calibration's sigma covers 95 of 100 pairs, so that one pair can be believed; the usual
scatter is about half of it (docs/measurements)."""
NORMAL_95 = 1.959964
_STUDENT_95 = (2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160)
"""Two-sided 95 % quantiles of Student's t for 5 to 13 degrees of freedom."""


def pairs_interval(groups: Sequence[Sequence[float]], between_process_sigma: float) -> Interval:
    """Return the geometric mean of what pairs of processes say, with its 95 % interval.

    For one pair it is `speedup_interval`. For more, the pairs show themselves how far they
    scatter. Of so few that is a poor estimate, so it is moderated by what was known beforehand
    (Smyth 2004, equation for the posterior variance): a mean of both variances, weighted by their
    degrees of freedom, with the t quantile of the sum.

    Args:
        groups: log ratios of blocks, one sequence a pair of processes; at most ten.
        between_process_sigma: of the calibration, without unit.

    Raises:
        ValueError: as `speedup_interval`, or there are no pairs, or too many.
    """
    count = len(groups)
    if not 1 <= count <= len(_STUDENT_95) + 1:
        raise ValueError(f"pairs_interval: {count} pairs, wanted 1 to {len(_STUDENT_95) + 1}")
    if count == 1:
        return speedup_interval(groups[0], between_process_sigma)
    centres = [median(group) for group in groups]
    mean = math.fsum(centres) / count
    seen = math.fsum((centre - mean) ** 2 for centre in centres) / (count - 1)
    known = math.fsum(_within(group) for group in groups) / count
    known += (TYPICAL * between_process_sigma) ** 2
    freedom = PRIOR_FREEDOM + count - 1
    variance = (PRIOR_FREEDOM * known + (count - 1) * seen) / freedom
    half = _STUDENT_95[freedom - PRIOR_FREEDOM - 1] * math.sqrt(variance / count)
    return from_logs(mean, half, half)


def _within(group: Sequence[float]) -> float:
    """Return the variance of a pair's estimate, by the scatter of its own blocks."""
    low, high = bootstrap_median_interval(group)
    return ((high - low) / (2 * NORMAL_95)) ** 2
