"""The median, quantiles, and the exact bootstrap interval of the median, in pure Python.

The values in order are x(1) to x(n), and m = n // 2. The median of a resample, median*, has a known
distribution (Maritz and Jarrett, JASA 73, 1978; Efron, Annals of Statistics 7, 1979):

* n odd: `P(median* <= x(k)) = P(Binomial(n, k / n) >= m + 1)`. The ends of the interval are
  interpolated: each value lies at the middle of its own step of this distribution. The percentile
  is linear between two such middles.
* n even: median* is the mean of x(i) and x(j), the m-th and the (m + 1)-th of the resample. For
  i < j, `P(i, j) = C(n, m) [(i/n)^m - ((i-1)/n)^m] [((n-j+1)/n)^m - ((n-j)/n)^m]`. The rest of
  P(m-th = i) is on i = j. These n (n + 1) / 2 means lie close together. So an end is the mean at
  which the distribution crosses the percentile, or the middle of both neighbours of an exact hit.

Values that are missing or not finite raise `ValueError`, and so does a level outside 0..1.
tests/unit/scoring/test_scipy_agreement.py compares the interval with the one of scipy.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache

_NEGLIGIBLE = 1e-12
"""Probability; the exact distribution leaves out rarer bootstrap outcomes."""


def bootstrap_median_interval(values: Iterable[float], level: float = 0.95) -> tuple[float, float]:
    """Return the percentile bootstrap interval of the median, without any resampling.

    The interval always contains the median. It cannot reach beyond the values. So intervals of
    fewer than six values cover 95 % less often than claimed, and that of one value has no width.
    `level` is the share of samples whose interval contains the true median.
    """
    ordered = _ordered(values, "bootstrap_median_interval")
    check_level("bootstrap_median_interval", level)
    tail = 0.5 * (1.0 - level)
    if len(ordered) % 2:
        low, high = _odd_percentile(ordered, tail), _odd_percentile(ordered, 1.0 - tail)
    else:
        outcomes = sorted(
            (_mean(ordered[i], ordered[j]), chance)
            for i, j, chance in _median_outcomes(len(ordered))
        )
        low, high = _crossing(outcomes, tail), _crossing(outcomes[::-1], tail)
    centre = _middle(ordered)
    return min(low, centre), max(high, centre)


def median(values: Iterable[float]) -> float:
    """Return the middle value, or the mean of the two middle ones."""
    return _middle(_ordered(values, "median"))


def quantile(values: Iterable[float], q: float) -> float:
    """Return the `q`-quantile by linear interpolation (type 7 of Hyndman and Fan 1996)."""
    ordered = _ordered(values, "quantile")
    if not 0.0 <= q <= 1.0:
        raise ValueError(f"quantile: q is {q!r}, expected between 0 and 1")
    place = q * (len(ordered) - 1)
    below = min(math.floor(place), len(ordered) - 1)
    above = min(below + 1, len(ordered) - 1)
    return _between(ordered[below], ordered[above], place - below)


def check_level(what: str, level: float) -> None:
    if not 0.0 < level < 1.0:
        raise ValueError(f"{what}: level is {level!r}, expected between 0 and 1")


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


def _crossing(outcomes: Sequence[tuple[float, float]], tail: float) -> float:
    """Return where the distribution of the mean of the two middle values crosses `tail`."""
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
        return tuple((i - 1, i - 1, chance) for i, chance in _rank_chances(n, half + 1))
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
    # P(half of the resample at most i, the rest above): at most 1, though its factors overflow.
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
    if p >= 1.0:
        return 1.0
    if least > n * p:
        return _term_sum(n, p, least, 1)
    return 1.0 - _term_sum(n, p, least - 1, -1)


def _term_sum(n: int, p: float, start: int, step: int) -> float:
    """Sum binomial terms from `start` away from the mean, until they are negligible."""
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
    # Halved first: the sum of two large numbers would overflow.
    return 0.5 * low + 0.5 * high


def _between(low: float, high: float, fraction: float) -> float:
    if low == high:
        return low
    return min(max(low * (1.0 - fraction) + high * fraction, low), high)
