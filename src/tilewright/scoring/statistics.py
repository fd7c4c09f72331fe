"""From timed blocks to a speed-up with its interval, in pure Python.

Everything here is a function of its arguments: no randomness, no clock, no numpy. Times are in
microseconds, ratios are without unit, and `log` is the natural logarithm.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Literal

__all__ = [
    "Decision",
    "Interval",
    "bootstrap_median_interval",
    "combine",
    "decide",
    "from_logs",
    "geometric_mean_interval",
    "is_noisy",
    "median",
    "paired_log_ratios",
    "proportion_interval",
    "quantile",
    "speedup_interval",
]

Decision = Literal["faster", "slower", "no measurable difference"]

NOISY_HALF_WIDTH, STRETCH = 0.05, 1.5
"""An interval wider than the first on either side counts as this much wider where it decides."""

_NEGLIGIBLE = 1e-12
"""Bootstrap outcomes rarer than this are left out of the exact distribution."""


_LARGEST_LOG = 700.0
"""A log ratio of about this size no longer fits a float."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and the two ends of its interval, in the unit of the estimate."""

    estimate: float
    low: float
    high: float


def median(values: Iterable[float]) -> float:
    """Return the middle value, or the mean of the two middle ones.

    Raises:
        ValueError: there are no values, or one is not finite.
    """
    return _middle(_ordered(values, "median"))


def quantile(values: Iterable[float], q: float) -> float:
    """Return the `q`-quantile by linear interpolation (type 7 of Hyndman and Fan 1996).

    Raises:
        ValueError: there are no values, one is not finite, or `q` is outside 0..1.
    """
    ordered = _ordered(values, "quantile")
    if not 0.0 <= q <= 1.0:
        raise ValueError(f"quantile: q is {q!r}, wanted between 0 and 1")
    place = q * (len(ordered) - 1)
    below = min(math.floor(place), len(ordered) - 1)
    above = min(below + 1, len(ordered) - 1)
    return _between(ordered[below], ordered[above], place - below)


def paired_log_ratios(blocks: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """Return the log of reference / candidate of each ABBA block; above 0: candidate faster.

    A block is `(reference, candidate, candidate, reference)` in microseconds. Within a block
    each side is the geometric mean of its two calls, so that a drift which is linear in time
    cancels, to first order.

    Raises:
        ValueError: there are no blocks, a block is not four long, or a time is not positive.
    """
    if not blocks:
        raise ValueError("paired_log_ratios: no blocks were given")
    ratios = []
    for number, block in enumerate(blocks):
        if len(block) != 4:
            raise ValueError(f"paired_log_ratios: block {number} has {len(block)} times, wanted 4")
        if not all(0.0 < time_us < math.inf for time_us in block):
            raise ValueError(
                f"paired_log_ratios: block {number} has a time that is not above zero and "
                f"finite: {tuple(block)}"
            )
        first, second, third, fourth = (math.log(time_us) for time_us in block)
        ratios.append(0.5 * ((first + fourth) - (second + third)))
    return tuple(ratios)


def bootstrap_median_interval(values: Iterable[float], level: float = 0.95) -> tuple[float, float]:
    """Return the percentile bootstrap interval of the median, without any resampling.

    The distribution of the median over all resamples of `n` values is known in closed form
    (Maritz and Jarrett 1978; Efron 1979), so no random numbers are needed. With the values in
    order, x(1) to x(n), and m = n // 2:

    * n odd: P(median* <= x(k)) = P(Binomial(n, k / n) >= m + 1). The ends are interpolated:
      x(k) stands at the middle of its own step of this distribution, and between two such
      middles the percentile is linear.
    * n even: median* is the mean of x(i) and x(j), the m-th and the (m + 1)-th of the resample.
      For i < j, P(i, j) = C(n, m) [(i/n)^m - ((i-1)/n)^m] [((n-j+1)/n)^m - ((n-j)/n)^m]; the
      rest of P(m-th = i) is on i = j. These n (n + 1) / 2 means lie close together, so the
      ends are where their distribution crosses the percentile, and the mean of both neighbours
      where it meets it exactly.

    Both rules are unchanged by ties, and negating the values negates the interval. The interval
    always contains the median. It cannot reach beyond the values: fewer than six cover 95 %
    less often than claimed, and a single value gives an interval without width.

    Args:
        values: at least one finite number; independent blocks, in any order.
        level: how often the interval should contain the true median, between 0 and 1.

    Raises:
        ValueError: there are no values, one is not finite, or `level` is outside 0..1.
    """
    ordered = _ordered(values, "bootstrap_median_interval")
    _check_level("bootstrap_median_interval", level)
    tail = 0.5 * (1.0 - level)
    if len(ordered) % 2:
        low, high = _odd_percentile(ordered, tail), _odd_percentile(ordered, 1.0 - tail)
    else:
        low, high = _even_percentiles(ordered, tail)
    centre = _middle(ordered)
    return min(low, centre), max(high, centre)


def combine(half_width_within: float, between: float) -> float:
    """Return the half-width of two independent errors together, added in quadrature.

    Both must be half-widths at the same level and in the same unit.

    Raises:
        ValueError: one of them is negative or not finite.
    """
    for name, width in (("half_width_within", half_width_within), ("between", between)):
        if not 0.0 <= width < math.inf:
            raise ValueError(f"combine: {name} is {width!r}, wanted finite and not negative")
    return math.hypot(half_width_within, between)


def speedup_interval(
    log_ratios: Iterable[float], between_process_sigma: float, level: float = 0.95
) -> Interval:
    """Return the speed-up with its interval: exp of the median log ratio and of its ends.

    Blocks of one pair of processes share what those processes were dealt (addresses, placement),
    so their own scatter understates the error. `between_process_sigma`, the standard deviation
    of the log ratio from one pair of processes to the next, is added on each side in quadrature,
    as a normal half-width at `level`.

    Args:
        log_ratios: of `paired_log_ratios`, one a block.
        between_process_sigma: without unit, as 0.01 for 1 %; 0 if there is no such error.
        level: how often the interval should contain the true speed-up.

    Raises:
        ValueError: there are no ratios, a number is not finite or out of range, or the result
            does not fit a float.
    """
    ratios = tuple(log_ratios)
    centre = median(ratios)
    low, high = bootstrap_median_interval(ratios, level)
    between = _normal_half_width(level) * between_process_sigma
    return from_logs(centre, combine(centre - low, between), combine(high - centre, between))


def decide(interval: Interval) -> Decision:
    """Say what a speed-up's interval allows to be said: one side of 1, or nothing.

    An interval of 95 % excludes 1 for one in forty candidates that are no faster. Where it is wide
    they would be said to be so by many percent, so a wide one has to exclude 1 by half as much
    again: about three standard errors, one in some five hundred.
    """
    middle = math.log(interval.estimate)
    stretch = STRETCH if is_noisy(interval) else 1.0
    if middle > stretch * (middle - math.log(interval.low)):
        return "faster"
    if middle < -stretch * (math.log(interval.high) - middle):
        return "slower"
    return "no measurable difference"


def is_noisy(interval: Interval) -> bool:
    """Tell whether an interval is so wide that little can be said by it."""
    return interval.high / interval.low >= (1 + NOISY_HALF_WIDTH) ** 2


def geometric_mean_interval(intervals: Sequence[Interval]) -> Interval:
    """Return the geometric mean of the speed-ups of several cases, with its interval.

    The errors of the cases are taken as independent: on the log scale the half-widths of each
    side add in quadrature and are divided by the number of cases. An error that the cases share
    (one pair of processes for all) does not shrink so; leave it out of the cases' intervals and
    add it with `combine` afterwards.

    Raises:
        ValueError: there are no intervals, or one is not `0 < low <= estimate <= high`.
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
    """Return the share `successes / trials` with its score interval (Wilson 1927).

    Raises:
        ValueError: there are no trials, `successes` is not in 0..trials, or `level` is not
            between 0 and 1.
    """
    if trials < 1:
        raise ValueError("proportion_interval: no trials were given")
    if not 0 <= successes <= trials:
        raise ValueError(f"proportion_interval: {successes} successes of {trials} trials")
    z2 = _normal_half_width(level) ** 2
    share = successes / trials
    centre = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    spread = math.sqrt(z2 * (share * (1 - share) / trials + z2 / (4 * trials * trials)))
    spread /= 1 + z2 / trials
    # At 0 and at all successes one end is the share itself; rounding must not move it past.
    low, high = min(centre - spread, share), max(centre + spread, share)
    return Interval(share, max(0.0, low), min(1.0, high))


def _ordered(values: Iterable[float], what: str) -> list[float]:
    ordered = list(values)
    if not ordered:
        raise ValueError(f"{what}: no values were given")
    if not all(map(math.isfinite, ordered)):
        raise ValueError(f"{what}: a value is not finite")
    ordered.sort()
    return ordered


def _middle(ordered: Sequence[float]) -> float:
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else _mean(ordered[half - 1], ordered[half])


def _mean(low: float, high: float) -> float:
    # Halved first: the sum of two large numbers would overflow. Exact below that.
    return 0.5 * low + 0.5 * high


def _between(low: float, high: float, fraction: float) -> float:
    if low == high:
        return low
    return min(max(low * (1.0 - fraction) + high * fraction, low), high)


def _check_level(what: str, level: float) -> None:
    if not 0.0 < level < 1.0:
        raise ValueError(f"{what}: level is {level!r}, wanted between 0 and 1")


def _normal_half_width(level: float) -> float:
    _check_level("interval", level)
    return NormalDist().inv_cdf(0.5 + 0.5 * level)


def from_logs(centre: float, below: float, above: float) -> Interval:
    """Return the interval of a log ratio that reaches so far below and above it.

    Raises:
        ValueError: it does not fit a float.
    """
    if centre - below < -_LARGEST_LOG or centre + above > _LARGEST_LOG:
        raise ValueError(f"a log ratio of {centre:.3g} -{below:.3g} +{above:.3g} is no speed-up")
    return Interval(math.exp(centre), math.exp(centre - below), math.exp(centre + above))


def _odd_percentile(ordered: Sequence[float], q: float) -> float:
    """Interpolate between order statistics at the middles of their steps."""
    reached, last_middle, last = 0.0, 0.0, ordered[0]
    for rank, _, chance in _median_outcomes(len(ordered)):
        middle = reached + 0.5 * chance
        value = ordered[rank]
        if middle >= q:
            return _between(last, value, (q - last_middle) / (middle - last_middle))
        reached, last_middle, last = reached + chance, middle, value
    return last


def _even_percentiles(ordered: Sequence[float], tail: float) -> tuple[float, float]:
    """Invert the distribution of the mean of the two middle values, from both ends."""
    outcomes = sorted(
        (_mean(ordered[i], ordered[j]), chance) for i, j, chance in _median_outcomes(len(ordered))
    )
    return _crossing(outcomes, tail), _crossing(outcomes[::-1], tail)


def _crossing(outcomes: Sequence[tuple[float, float]], tail: float) -> float:
    # A tail is at most one half, so the outcomes never run out.
    number, reached = 0, outcomes[0][1]
    while reached < tail and not math.isclose(reached, tail, rel_tol=1e-9):
        number += 1
        reached += outcomes[number][1]
    if math.isclose(reached, tail, rel_tol=1e-9):
        return _mean(outcomes[number][0], outcomes[number + 1][0])
    return outcomes[number][0]


@lru_cache(maxsize=256)
def _median_outcomes(n: int) -> tuple[tuple[int, int, float], ...]:
    """Return `(i, j, chance)`: a resample's median is the mean of values i and j (from 0)."""
    half = n // 2
    if n % 2:
        steps = _rank_chances(n, half + 1)
        return tuple((i - 1, i - 1, chance) for i, chance in steps)
    log_ways = math.lgamma(n + 1) - 2.0 * math.lgamma(half + 1)
    outcomes: list[tuple[int, int, float]] = []
    for i, chance in _rank_chances(n, half):
        apart = _pairs_from(n, i, log_ways)
        outcomes += apart
        outcomes.append((i - 1, i - 1, max(chance - sum(pair[2] for pair in apart), 0.0)))
    return tuple(outcomes)


def _pairs_from(n: int, i: int, log_ways: float) -> list[tuple[int, int, float]]:
    """Return the outcomes for even `n` whose lower middle is the i-th value, upper above it."""
    half = n // 2
    if i == n:
        return []
    # P(half of the draws at most i, the others above): at most 1, where its factors overflow.
    share = math.exp(log_ways + half * (math.log(i / n) + math.log((n - i) / n)))
    share *= -math.expm1(half * math.log1p(-1.0 / i)) if i > 1 else 1.0
    pairs = []
    beyond = 1.0
    for j in range(i + 1, n + 1):
        at_least, beyond = beyond, ((n - j) / (n - i)) ** half
        chance = share * (at_least - beyond)
        if chance < _NEGLIGIBLE:
            break
        pairs.append((i - 1, j - 1, chance))
    return pairs


def _rank_chances(n: int, place: int) -> list[tuple[int, float]]:
    """Return `(k, chance)`: the `place`-th smallest of a resample is the k-th value (from 1)."""
    chances = []
    before = 0.0
    for k in range(1, n + 1):
        upto = _binomial_tail(n, k / n, place)
        if upto - before >= _NEGLIGIBLE:
            chances.append((k, upto - before))
        before = upto
    return chances


def _binomial_tail(n: int, p: float, least: int) -> float:
    """Return P(Binomial(n, p) >= least), for least >= 1."""
    if p >= 1.0:
        return 1.0
    if least > n * p:
        return _term_sum(n, p, least, 1)
    return 1.0 - _term_sum(n, p, least - 1, -1)


def _term_sum(n: int, p: float, start: int, step: int) -> float:
    """Sum binomial terms from `start` away from the mean, until they no longer count."""
    odds = p / (1.0 - p)
    log_term = math.lgamma(n + 1) - math.lgamma(start + 1) - math.lgamma(n - start + 1)
    term = math.exp(log_term + start * math.log(p) + (n - start) * math.log1p(-p))
    total, count = 0.0, start
    while 0 <= count <= n and term > 1e-18:
        total += term
        if step > 0:
            term *= odds * (n - count) / (count + 1)
        else:
            term *= count / ((n - count + 1) * odds)
        count += step
    return total
