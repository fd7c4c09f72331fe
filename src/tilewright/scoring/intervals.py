"""From timed blocks to a speed-up with its interval, in pure Python.

* One block (r1, c1, c2, r2) of baseline and candidate has the log ratio
  `(log r1 + log r2 - log c1 - log c2) / 2`.
* The speed-up is `exp(median of the log ratios)`. On the log scale each half-width of its interval
  is `sqrt(w^2 + (z s)^2)`. Here w is that of the bootstrap interval, s the process-to-process
  standard deviation, and z the normal quantile (1.96 at 95 %).
* Of several cases it is the mean of the logs, with `sqrt(sum of squared half-widths) / count`.
* The interval of a proportion p = k / n is (Wilson, JASA 22, 1927)
  `[p + z^2/2n -+ z sqrt(p (1 - p)/n + z^2/4n^2)] / (1 + z^2/n)`.

Arguments that define no number raise `ValueError`, and so does a result that does not fit a float.
Times are in microseconds, ratios have no unit, and `log` is the natural logarithm.
tests/unit/scoring/test_scipy_agreement.py compares the quantiles and intervals with those of scipy.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

from tilewright.scoring.bootstrap import bootstrap_median_interval, check_level, median

NOISY_HALF_WIDTH = 0.05
"""Ratio, without unit: the ends of a noisy interval differ by (1 + this)^2 or more."""
STRETCH = 1.5
"""Factor by which `decide` widens a noisy interval: 1.5 x 1.96 is about three standard errors."""
_MAX_LOG = 700.0
"""Natural logarithm: exp of a larger log ratio (about 709) does not fit a float."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and the two ends of its interval, in the unit of the estimate."""

    estimate: float
    low: float
    high: float


def paired_log_ratios(blocks: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """Return the log of reference / candidate of each ABBA block; above 0: candidate faster.

    A block is `(reference, candidate, candidate, reference)` in microseconds. The geometric mean of
    both calls of an implementation cancels a drift that is linear in time, to first order.
    """
    if not blocks:
        raise ValueError("paired_log_ratios: no blocks were given")
    ratios = []
    for number, block in enumerate(blocks):
        where = f"paired_log_ratios: block {number}"
        if len(block) != 4:
            raise ValueError(f"{where} has {len(block)} times, expected 4")
        if not all(0.0 < time_us < math.inf for time_us in block):
            raise ValueError(f"{where} has a time not above zero or not finite: {tuple(block)}")
        first, second, third, fourth = (math.log(time_us) for time_us in block)
        ratios.append(0.5 * ((first + fourth) - (second + third)))
    return tuple(ratios)


def combine(half_width_within: float, between: float) -> float:
    """Return the half-width of two independent errors together, added in quadrature.

    Both must be half-widths at the same level and in the same unit.
    """
    for width in (half_width_within, between):
        if not 0.0 <= width < math.inf:
            raise ValueError(f"combine: {width!r} is no half-width")
    return math.hypot(half_width_within, between)


def speedup_interval(
    log_ratios: Iterable[float], between_process_sigma: float, level: float = 0.95
) -> Interval:
    """Return the speed-up with its interval: exp of the median log ratio and of its ends.

    Blocks of one process replicate share the memory placement of its processes, so their own
    scatter understates the error. `between_process_sigma` is the standard deviation of the log
    ratio from one process replicate to the next, 0.01 for 1 %. It is added to both half-widths in
    quadrature.
    """
    ratios = tuple(log_ratios)
    centre = median(ratios)
    low, high = bootstrap_median_interval(ratios, level)
    between = _normal_half_width(level) * between_process_sigma
    return from_logs(centre, combine(centre - low, between), combine(high - centre, between))


def decide(interval: Interval) -> Literal["faster", "slower", "no measurable difference"]:
    """Return whether a speed-up is above 1, below 1, or neither, by its interval.

    One in forty candidates that are no faster has a 95 % interval above 1. With wide intervals
    such an error would claim many percent. So a wide interval must still exclude 1 when stretched
    by 1.5. That is about three standard errors, and an error in one of some five hundred.
    """
    middle = math.log(interval.estimate)
    stretch = STRETCH if is_noisy(interval) else 1.0
    if middle > stretch * (middle - math.log(interval.low)):
        return "faster"
    if middle < -stretch * (math.log(interval.high) - middle):
        return "slower"
    return "no measurable difference"


def is_noisy(interval: Interval) -> bool:
    """Tell whether an interval is too wide to support a claim by itself."""
    return interval.high / interval.low >= (1 + NOISY_HALF_WIDTH) ** 2


def geometric_mean_interval(intervals: Sequence[Interval]) -> Interval:
    """Return the geometric mean of the speed-ups of several cases, with its interval.

    This takes the errors of the cases as independent. An error that all cases share (one process
    replicate for all) does not shrink with their number. Leave it out of the cases' intervals, and
    add it with `combine` afterwards.
    """
    if not intervals:
        raise ValueError("geometric_mean_interval: no intervals were given")
    for each in intervals:
        if not 0.0 < each.low <= each.estimate <= each.high < math.inf:
            raise ValueError(f"geometric_mean_interval: {each} is not a positive interval")
    count = len(intervals)
    centre = math.fsum(math.log(each.estimate) for each in intervals) / count
    below = math.hypot(*(math.log(each.estimate / each.low) for each in intervals)) / count
    above = math.hypot(*(math.log(each.high / each.estimate) for each in intervals)) / count
    return from_logs(centre, below, above)


def proportion_interval(successes: int, trials: int, level: float = 0.95) -> Interval:
    """Return the share `successes / trials` with its score interval (Wilson 1927)."""
    if trials < 1:
        raise ValueError("proportion_interval: no trials were given")
    if not 0 <= successes <= trials:
        raise ValueError(f"proportion_interval: {successes} successes of {trials} trials")
    z2 = _normal_half_width(level) ** 2
    share = successes / trials
    centre = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    spread = math.sqrt(z2 * (share * (1 - share) / trials + z2 / (4 * trials * trials)))
    spread /= 1 + z2 / trials
    # At 0 and at all successes one end is the share itself; rounding must not exclude it.
    low, high = min(centre - spread, share), max(centre + spread, share)
    return Interval(share, max(0.0, low), min(1.0, high))


def from_logs(centre: float, below: float, above: float) -> Interval:
    """Return the interval of a log ratio with these half-widths below and above it."""
    if centre - below < -_MAX_LOG or centre + above > _MAX_LOG:
        raise ValueError(f"a log ratio of {centre:.3g} -{below:.3g} +{above:.3g} is no speed-up")
    return Interval(math.exp(centre), math.exp(centre - below), math.exp(centre + above))


def _normal_half_width(level: float) -> float:
    check_level("interval", level)
    return NormalDist().inv_cdf(0.5 + 0.5 * level)
