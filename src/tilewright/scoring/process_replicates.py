"""What several pairs of processes say together."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilewright.scoring.bootstrap import bootstrap_median_interval, median
from tilewright.scoring.intervals import Interval, from_logs, speedup_interval

__all__ = ["MAX_REPLICATES", "interval_of_centres", "pairs_interval"]

PRIOR_FREEDOM, MAX_PRIOR_FREEDOM = 2, 8
"""How many degrees of freedom each pair brings to the scatter that is known without comparing them,
and how many they bring together at most: where many pairs were made, they disagreed."""
BELIED, BELIED_FREEDOM = 3.0, 2
"""Pairs whose variance is more than so many times what was known show that it was known of other
functions; it brings so few degrees of freedom then."""
MAX_REPLICATES = 10
NORMAL_95 = 1.959964
_FEWEST = BELIED_FREEDOM + 1
STUDENT_95 = (
    *(3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110),
)
"""Two-sided 95 % quantiles of Student's t for 3 to 17 degrees of freedom."""


def pairs_interval(
    groups: Sequence[Sequence[float]],
    between_process_sigma: float,
    apart: float | None = None,
) -> Interval:
    """Return the geometric mean of what pairs of processes say, with its 95 % interval.

    For one pair it is `speedup_interval`. For more, the pairs show themselves how far they
    scatter. Of so few that is a poor estimate, so it is moderated by what was known beforehand
    (Smyth 2004, equation for the posterior variance): a mean of both variances, weighted by their
    degrees of freedom, with the t quantile of the sum. Where the pairs scatter far beyond it, what
    was known hardly counts.

    Args:
        groups: log ratios of blocks, one sequence a pair of processes; at most ten.
        between_process_sigma: of the calibration, without unit.
        apart: how many pairs these are worth, where some share a process; none do if left out.

    Raises:
        ValueError: as `speedup_interval`, or there are no pairs, or too many.
    """
    if len(groups) == 1:
        return speedup_interval(groups[0], between_process_sigma)
    centres = [(median(group), _within(group)) for group in groups]
    return interval_of_centres(centres, between_process_sigma, apart)


def interval_of_centres(
    centres: Sequence[tuple[float, float]],
    between_process_sigma: float,
    apart: float | None = None,
) -> Interval:
    """Return what two to ten pairs say, from the log ratio of each and that estimate's variance.

    The formula is described at `pairs_interval`.

    Raises:
        ValueError: there are too few pairs, or too many.
    """
    count = len(centres)
    if not 2 <= count <= MAX_REPLICATES:
        raise ValueError(f"{count} pairs of processes, wanted 1 to {MAX_REPLICATES}")
    mean = math.fsum(centre for centre, _ in centres) / count
    seen = math.fsum((centre - mean) ** 2 for centre, _ in centres) / (count - 1)
    known = math.fsum(within for _, within in centres) / count
    known += between_process_sigma**2
    prior = (
        min(PRIOR_FREEDOM * count, MAX_PRIOR_FREEDOM) if seen <= BELIED * known else BELIED_FREEDOM
    )
    freedom = prior + count - 1
    variance = (prior * known + (count - 1) * seen) / freedom
    half = STUDENT_95[freedom - _FEWEST] * math.sqrt(variance / (apart or count))
    return from_logs(mean, half, half)


def _within(group: Sequence[float]) -> float:
    """Return the variance of a pair's estimate, by the scatter of its own blocks."""
    low, high = bootstrap_median_interval(group)
    return ((high - low) / (2 * NORMAL_95)) ** 2
