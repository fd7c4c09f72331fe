"""An epsilon-net: new programs that are far from the known ones and from each other.

POLCA (arXiv 2603.14769, section on the epsilon-net) judges only proposals whose distance to every
known program is above epsilon. It admits the farthest first, since each admitted one may be near
to others. Each rejected proposal lies within epsilon of a known or of an admitted one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tilewright.errors import ConfigError

Vector = tuple[float, ...]


class Epsilon:
    """The radius of a net: given, or calibrated on the first proposals. Lifetime: one run."""

    def __init__(self, given: float | Literal["calibrate"], count: int, quantile: float) -> None:
        self._value = None if given == "calibrate" else given
        self._origin = "calibrated" if given == "calibrate" else "given"
        self._count, self._quantile = count, quantile
        self._seen: list[Vector] = []

    @property
    def value(self) -> float:
        """Return the radius; 0, which admits all, until it is calibrated."""
        return 0.0 if self._value is None else self._value

    def __str__(self) -> str:
        """Return the radius and its origin, for the log."""
        if self._value is None:
            return f"epsilon not calibrated, {len(self._seen)} of {self._count} proposals"
        return f"epsilon {self._value:.4g}, {self._origin}"

    def learn(self, proposals: Sequence[Vector]) -> None:
        """Take in proposals; after the first ones, take a quantile of their distances."""
        if self._value is not None:
            return
        self._seen = list(dict.fromkeys([*self._seen, *proposals]))
        if len(self._seen) >= self._count:
            pairs = itertools.combinations(self._seen[: self._count], 2)
            distances = sorted(math.dist(*pair) for pair in pairs)
            self._value = distances[round(self._quantile * (len(distances) - 1))]


@dataclass(frozen=True)
class Admitted:
    """A proposal that is admitted, and its distance to the nearest program before it."""

    place: int
    """Place among the proposals."""
    distance: float


def admitted(
    proposals: Sequence[Vector], known: Sequence[Vector], epsilon: float
) -> list[Admitted]:
    """Return the admitted proposals, the farthest first; of equally far ones the earlier.

    Distances are Euclidean. An epsilon of 0 admits all, in their order and without a comparison.

    Raises:
        ConfigError: two vectors have different lengths.
    """
    if epsilon == 0:
        return [Admitted(place, math.inf) for place in range(len(proposals))]
    lengths = {len(vector) for vector in (*proposals, *known)}
    if len(lengths) > 1:
        raise ConfigError(
            f"embeddings of one run have different lengths: {sorted(lengths)}; use one embedding "
            "model for a whole run, or start a new run"
        )
    nearest = {
        place: min((math.dist(vector, other) for other in known), default=math.inf)
        for place, vector in enumerate(proposals)
    }
    taken: list[Admitted] = []
    while True:
        nearest = {place: distance for place, distance in nearest.items() if distance > epsilon}
        if not nearest:
            return taken
        place = max(nearest, key=nearest.__getitem__)
        taken.append(Admitted(place, nearest.pop(place)))
        for other, distance in nearest.items():
            nearest[other] = min(distance, math.dist(proposals[other], proposals[place]))
