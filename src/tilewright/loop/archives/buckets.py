"""Buckets of equally fast candidates, from which CUDA-L1 draws the exemplars of a prompt.

Bucket k holds the candidates whose log2 of the score lies in [k delta, (k + 1) delta). A draw takes
different buckets, so that the exemplars differ in speed (CUDA-L1, arXiv 2507.14111, section on
contrastive exemplars). The paper gives neither delta nor tau.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

MIN_TAU = 0.1
"""Least default temperature, in units of the score: buckets of nearly equal means stay random."""


@dataclass(frozen=True)
class Bucket:
    """Candidates of about the same score, in the order of their admission."""

    place: int
    mean: float
    """Mean of their scores."""
    members: tuple[str, ...]


class Buckets:
    """Scored candidates by name. Lifetime: one run; replay rebuilds it."""

    def __init__(self, delta: float) -> None:
        self._delta = delta
        self._scores: dict[str, float] = {}
        self._members: dict[int, dict[str, float]] = {}

    def put(self, name: str, score: float) -> None:
        """Admit a candidate, or move it to the bucket of its new score.

        Raises:
            ValueError: the score is not positive, so that it has no logarithm.
        """
        if not score > 0:
            raise ValueError(f"{name}: the score {score} is not positive")
        if name in self._scores:
            self._take_out(name)
        self._scores[name] = score
        self._members.setdefault(self._place(score), {})[name] = score

    def drop(self, name: str) -> None:
        """Remove a candidate, if it is there."""
        if name in self._scores:
            self._take_out(name)
            del self._scores[name]

    def __len__(self) -> int:
        return len(self._scores)

    def buckets(self) -> list[Bucket]:
        """Return the buckets that hold a candidate, slowest first."""
        return [
            Bucket(place, statistics.fmean(members.values()), tuple(members))
            for place, members in sorted(self._members.items())
        ]

    def _place(self, score: float) -> int:
        return math.floor(math.log2(score) / self._delta)

    def _take_out(self, name: str) -> None:
        place = self._place(self._scores[name])
        del self._members[place][name]
        if not self._members[place]:
            del self._members[place]

    def names(self) -> tuple[str, ...]:
        """Return all candidates in the order of their admission."""
        return tuple(self._scores)

    def worst_first(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return some candidates by score; of equal ones the one that is named first."""
        return tuple(sorted(names, key=self._scores.__getitem__))


def chances(means: Sequence[float], tau: float | None) -> list[float]:
    """Return the probability of each bucket at a first draw: the softmax of the means over tau.

    `tau` is a temperature in units of the score; `None` takes the standard deviation of the means.
    """
    if tau is None:
        tau = max(statistics.pstdev(means), MIN_TAU)
    # The largest mean is subtracted so that no exponential overflows; it cancels.
    weights = [math.exp((mean - max(means)) / tau) for mean in means]
    return [weight / sum(weights) for weight in weights]


def contrasting(
    archive: Buckets, count: int, tau: float | None, draw: random.Random
) -> tuple[str, ...]:
    """Return exemplars of different buckets, one of each, in the order of the draws.

    Later draws renormalise the chances of the buckets that are left. With fewer buckets than
    `count` the rest comes from the remaining candidates, all equally likely.
    """
    buckets = archive.buckets()
    if not buckets:
        return ()
    left = list(zip(buckets, chances([bucket.mean for bucket in buckets], tau), strict=True))
    taken: list[str] = []
    while left and len(taken) < count:
        place = _drawn([chance for _, chance in left], draw)
        bucket, _ = left.pop(place)
        taken.append(draw.choice(bucket.members))
    rest = [name for name in archive.names() if name not in taken]
    return (*taken, *draw.sample(rest, min(count - len(taken), len(rest))))


def uniform(archive: Buckets, count: int, draw: random.Random) -> tuple[str, ...]:
    """Return different candidates, all equally likely, whatever their scores are."""
    names = archive.names()
    return tuple(draw.sample(names, min(count, len(names))))


def best(archive: Buckets, count: int) -> tuple[str, ...]:
    """Return the candidates with the highest scores; of equal ones the earlier."""
    # `worst_first` keeps equal ones in order, so the newest must come first there.
    return archive.worst_first(archive.names()[::-1])[::-1][:count]


def _drawn(weights: Sequence[float], draw: random.Random) -> int:
    """Return a place with a probability proportional to its weight."""
    total = sum(weights)
    if not total > 0:
        # All remaining weights underflow: in this limit the last bucket, the fastest, is taken.
        return len(weights) - 1
    mark = draw.random() * total
    for place, weight in enumerate(weights):
        mark -= weight
        if mark < 0:
            return place
    return max(place for place, weight in enumerate(weights) if weight > 0)
