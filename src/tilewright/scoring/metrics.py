"""Benchmark metrics: pure functions of scores, one `Score` for each candidate.

A published name keeps its published definition; a stricter metric has a name of its own. A
candidate without a verdict (`unjudged`) has no `Score`; the caller reports how many it left out.
Arguments that define no number, such as no scores at all, raise `ValueError`.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Any, NamedTuple


@dataclass(frozen=True)
class Score:
    """The result of one candidate."""

    ok: bool
    """Whether it compiled, was right, and did its own work."""
    speedup: float | None = None
    low: float | None = None
    """Lower end of the interval of the speed-up, if there is one."""
    rejected: bool = False
    """Whether it broke a rule: right or not, it is no solution."""


class FastCount(NamedTuple):
    """The numbers of fast candidates, at one threshold."""

    faster: int
    at_least: int
    believed: int
    """Candidates whose interval as a whole is above the threshold. Ours."""


def fast_p(scores: Sequence[Score], p: float) -> float:
    """Return the share of all that are ok and faster than `p`, strictly (KernelBench, 1.2.4).

    A candidate that is ok and was not timed counts at `p` = 0 alone.
    """
    return fast_counts(scores, [p])[0].faster / _number(scores)


def fast_p_at_least(scores: Sequence[Score], p: float) -> float:
    """Return the share of all that are ok and at least `p` times as fast (Dr. Kernel, 2.10)."""
    return fast_counts(scores, [p])[0].at_least / _number(scores)


def fast_p_believed(scores: Sequence[Score], p: float) -> float:
    """Return the share of all that are ok and have an interval above `p` as a whole. Ours."""
    return fast_counts(scores, [p])[0].believed / _number(scores)


def untimed(scores: Sequence[Score]) -> bool:
    """Tell whether some are ok and none of these was timed: their fast shares are unknown."""
    right = [item for item in scores if item.ok]
    return bool(right) and all(item.speedup is None for item in right)


def fast_counts(scores: Sequence[Score], thresholds: Sequence[float]) -> list[FastCount]:
    """Return the numerators of `fast_p` and its relatives at each threshold, in one pass."""
    right = [item for item in scores if item.ok]
    speeds = sorted(item.speedup for item in right if item.speedup is not None)
    lows = sorted(item.low for item in right if item.low is not None)
    found = []
    for p in thresholds:
        untimed = len(right) - len(speeds) if p == 0 else 0
        faster, at_least = (len(speeds) - cut(speeds, p) for cut in (bisect_right, bisect_left))
        believed = len(lows) - bisect_right(lows, p)
        found.append(FastCount(faster + untimed, at_least + untimed, believed))
    return found


def _number(scores: Sequence[Score]) -> int:
    if not scores:
        raise ValueError("a share of no scores")
    return len(scores)


def rejected_share(scores: Sequence[Score]) -> float:
    """Return the share of all that broke a rule (the hacking ratio of Dr. Kernel, figure 8)."""
    return sum(item.rejected for item in scores) / _number(scores)


def mean_with_zeros(scores: Sequence[Score]) -> float | None:
    """Return the mean speed-up, zero for a candidate that is not ok (MTMC); `None` without any.

    It leaves out candidates that are ok and were not timed. If none of them was timed, there is no
    mean: all of its values would be zeros.
    """
    return _mean(_with_zeros(scores))


def amsr(scores: Sequence[Score]) -> float | None:
    """Return the mean speed-up, zero for one that is not ok or slower than 1 (Kernel-Smith).

    Like `mean_with_zeros` it leaves out candidates that are ok and were not timed.
    """
    return _mean([value if value >= 1 else 0.0 for value in _with_zeros(scores)])


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _with_zeros(scores: Sequence[Score]) -> list[float]:
    if untimed(scores):
        return []
    timed = [s.speedup for s in scores if s.ok and s.speedup is not None]
    return timed + [0.0 for s in scores if not s.ok]


def geometric_mean(scores: Sequence[Score], *, above: float = 0.0) -> float | None:
    """Return the geometric mean of the speed-ups above `above`, of scores that are ok."""
    speeds = (item.speedup for item in scores if item.ok and item.speedup is not None)
    mean = _mean([math.log(speed) for speed in speeds if speed > above])
    return None if mean is None else math.exp(mean)


def ratio_of_sums(reference: Sequence[float], candidate: Sequence[float | None]) -> float | None:
    """Return the sum of the reference's times over the candidate's (TritonBench, KernelBench-X).

    Both hold one time for each size, in the same order. A candidate that fails on one size has no
    speed-up; the published scripts leave such sizes out, which is their defect K5.
    """
    if len(reference) != len(candidate) or not reference:
        raise ValueError(f"{len(reference)} times of the reference, {len(candidate)} of it")
    times = [value for value in candidate if value is not None]
    return sum(reference) / sum(times) if len(times) == len(reference) else None


def pass_at_k(samples: int, right: int, k: int) -> float:
    """Return the chance that one of `k` of the `samples` is right (Chen et al. 2021).

    The unbiased estimator 1 - C(n - c, k) / C(n, k).
    """
    if not 1 <= k <= samples or not 0 <= right <= samples:
        raise ValueError(f"pass@{k} of {right} right among {samples}")
    return 1.0 - math.comb(samples - right, k) / math.comb(samples, k)


def fast_at_k(scores: Sequence[Score], p: float, k: int) -> float:
    """Return the chance that one of `k` samples of a problem is ok and faster than `p`."""
    return pass_at_k(len(scores), fast_counts(scores, [p])[0].faster, k)


def best_so_far(turns: Sequence[Score]) -> list[Score | None]:
    """Return, for each turn, the best ok score up to it; `None` before the first (2.10, STTS)."""
    found: list[Score | None] = []
    best: Score | None = None
    for item in turns:
        if item.ok and (best is None or (item.speedup or 0.0) > (best.speedup or 0.0)):
            best = item
        found.append(best)
    return found


def explained_deviance(outcomes: Sequence[bool], groups: Sequence[str]) -> float:
    """Return the share of the deviance of `outcomes` that groups explain (KernelBench-X, 1.1.4).

    1 - D(groups) / D(none) of a logistic model with one categorical factor, whose fit is the mean
    of each group; 0 if all outcomes are alike.
    """
    pairs = Counter(zip(groups, outcomes, strict=True))
    total = _deviance(sum(outcomes), len(outcomes))
    if total == 0:
        return 0.0
    within = math.fsum(
        _deviance(pairs[group, True], pairs[group, True] + pairs[group, False])
        for group in set(groups)
    )
    return 1.0 - within / total


def _deviance(right: int, count: int) -> float:
    parts = (part for part in (right, count - right) if part)
    return -2.0 * math.fsum(part * math.log(part / count) for part in parts)


_TAIL = (1.0 - 0.95) / 2


@lru_cache(maxsize=8)
def _resamples(count: int, resamples: int) -> tuple[itemgetter[Any], ...]:
    # A fixed seed: the same groups give the same interval.
    generator = random.Random(0)
    return tuple(itemgetter(*generator.choices(range(count), k=count)) for _ in range(resamples))


def bootstrap_interval(
    groups: Sequence[tuple[float, int]], *, resamples: int = 1000
) -> tuple[float, float]:
    """Return the 95 % percentile bootstrap interval of a mean over samples.

    Samples of one problem are not independent, so this resamples problems, with replacement.
    `groups` has for each problem the sum over its samples, and their number.
    """
    if not groups:
        raise ValueError("an interval of no problems")
    sums, counts = zip(*groups, strict=True)
    if len(groups) == 1:
        return sums[0] / counts[0], sums[0] / counts[0]
    chosen = _resamples(len(groups), resamples)
    found = sorted(math.fsum(pick(sums)) / sum(pick(counts)) for pick in chosen)
    return found[int(_TAIL * resamples)], found[min(int((1 - _TAIL) * resamples), resamples - 1)]
