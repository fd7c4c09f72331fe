"""The speed-up that several process replicates show together, with its 95 % interval.

Each of k replicates has n_i blocks. Its log ratio m_i is their median, with the variance w_i.

* All N blocks show how far one scatters around the median of its replicate. Let h be the half-width
  of the bootstrap interval of the median of all N distances. Then
  `w_i = (h / 1.96)^2 (N / n_i) (N / (N - k))`. A few blocks of one replicate would show less.
* The estimate m is their mean, and the observed variance is `s^2 = sum (m_i - m)^2 / (k - 1)`.
* From five replicates on, g = 1 value at each end is left out of the mean: one process may be
  disturbed for its whole life. Then s^2 is the variance of the winsorized values over
  `(1 - 2g / k)^2`, with k - 2g - 1 degrees of freedom (Tukey and McLaughlin, Sankhya A 25, 1963).
* The known variance is `v^2 = mean of w_i + sigma^2` of the calibration, with d degrees of freedom.
* With f degrees of freedom of s^2 they are together `(d v^2 + f s^2) / (d + f)`, the posterior
  variance of Smyth (Statistical Applications in Genetics and Molecular Biology 3, 2004).
* The half-width is `t(0.975, d + f) sqrt(variance / k)`.

tests/unit/scoring/test_scipy_agreement.py compares the quantiles with those of scipy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilewright.scoring.bootstrap import bootstrap_median_interval, median
from tilewright.scoring.intervals import Interval, from_logs, speedup_interval

PRIOR_FREEDOM = 2
"""Degrees of freedom of the known variance, for each replicate."""
MAX_PRIOR_FREEDOM = 8
"""Degrees of freedom of the known variance in all. Many replicates exist because they differed; a
larger value would let the calibration outvote them."""
MAX_VARIANCE_RATIO = 3.0
"""Observed over known variance: above this the calibration does not fit the function."""
MISFIT_FREEDOM = 2
"""Degrees of freedom of the known variance where the calibration does not fit."""
TRIMMED_FROM = 5
"""Replicates from which on the smallest and the largest are left out of the mean."""
MAX_REPLICATES = 10
"""Process replicates of one case: a limit of time, at which the table of quantiles ends."""
NORMAL_95 = 1.959964
"""Two-sided 95 % quantile of the normal distribution."""
STUDENT_95 = (
    *(3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110),
)
"""Two-sided 95 % quantiles of Student's t for 3 to 17 degrees of freedom (any table of t)."""
_FEWEST = MISFIT_FREEDOM + 1


def replicates_interval(
    groups: Sequence[Sequence[float]], between_process_sigma: float, apart: float | None = None
) -> Interval:
    """Return the geometric mean of process replicates, with its 95 % interval.

    For one replicate this is `speedup_interval`. A few replicates estimate their own scatter badly,
    so the calibrated variance moderates it.

    `groups` are log ratios of blocks, one sequence for each of at most ten process replicates.
    `apart` is the number of independent replicates that these count for, if some share a process.
    """
    if len(groups) == 1:
        return speedup_interval(groups[0], between_process_sigma)
    _check_count(len(groups))
    centres = list(zip(map(median, groups), median_variances(groups), strict=True))
    return interval_of_centres(centres, between_process_sigma, apart)


def interval_of_centres(
    centres: Sequence[tuple[float, float]], between_process_sigma: float, apart: float | None = None
) -> Interval:
    """Return the interval of two to ten replicates, from the log ratio and variance of each."""
    count = len(centres)
    _check_count(count)
    mean, observed, own = _trimmed(sorted(centre for centre, _ in centres))
    known = math.fsum(within for _, within in centres) / count
    known += between_process_sigma**2
    fits = observed <= MAX_VARIANCE_RATIO * known
    prior = min(PRIOR_FREEDOM * count, MAX_PRIOR_FREEDOM) if fits else MISFIT_FREEDOM
    freedom = prior + own
    variance = (prior * known + own * observed) / freedom
    half = STUDENT_95[freedom - _FEWEST] * math.sqrt(variance / (apart or count))
    return from_logs(mean, half, half)


def _trimmed(ordered: Sequence[float]) -> tuple[float, float, int]:
    """Return the mean of replicates in order, their variance, and its degrees of freedom."""
    count, ends = len(ordered), 1 if len(ordered) >= TRIMMED_FROM else 0
    kept = ordered[ends : count - ends]
    within = [min(max(value, kept[0]), kept[-1]) for value in ordered]
    middle = math.fsum(within) / count
    variance = math.fsum((value - middle) ** 2 for value in within) / (count - 1)
    variance /= (1 - 2 * ends / count) ** 2
    return math.fsum(kept) / len(kept), variance, count - 2 * ends - 1


def _check_count(count: int) -> None:
    if not 2 <= count <= MAX_REPLICATES:
        raise ValueError(f"{count} process replicates, expected 1 to {MAX_REPLICATES}")


def median_variances(groups: Sequence[Sequence[float]]) -> list[float]:
    """Return the variance of each replicate's median, by the scatter of the blocks of all.

    A distance from a median of n blocks is too small on average, by about a share of 1 / n.
    """
    apart = [value - median(group) for group in groups for value in group]
    low, high = bootstrap_median_interval(apart)
    of_block = len(apart) * ((high - low) / (2 * NORMAL_95)) ** 2
    of_block *= len(apart) / max(len(apart) - len(groups), 1)
    return [of_block / len(group) for group in groups]
