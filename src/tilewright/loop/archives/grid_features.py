"""The cell of a program in a grid: its features, scaled by the values that were seen so far.

Complexity is the length of the code. Diversity is the mean distance to a set of reference programs
(OpenEvolve 0.4.1, `openevolve/database.py`). Bounds only widen, so the same program may get another
cell later.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache

from tilewright.loop.archives.grid_members import Draw, GridRules, Member, fitness_of, total

Cell = tuple[int, ...]
"""One number for each dimension, from 0."""
MAX_SHAPES = 4096
"""Codes whose shape is kept: above the members of a population, and a few MB of memory."""


class Features:
    """Bounds of the features, and reference programs. Lifetime: one run; replay rebuilds it."""

    def __init__(self, rules: GridRules) -> None:
        self._rules = rules
        self._bins = rules.bins_per_dimension()
        self.bounds: dict[str, tuple[float, float]] = {}
        """Least and largest value of each feature so far."""
        self.references: tuple[str, ...] = ()
        """Codes that diversity is measured against."""
        self._diversities: dict[str, float] = {}
        self._widened = 0
        """How often bounds have widened."""
        self._cells: dict[str, tuple[int, Member, Cell]] = {}
        """The last cell of a member by name, and how often bounds had widened by then."""

    @property
    def bins(self) -> int:
        """Return the number of cells of a dimension."""
        return self._bins

    def cell(self, member: Member, members: Collection[Member], draw: Draw) -> Cell:
        """Return the cell of a member, and widen the bounds to its features.

        `members` are all members of the archive, with this one.
        """
        # Without a change of bounds or of the member's diversity it would come out the same.
        before = self._cells.get(member.name)
        valid = before is not None and before[0] == self._widened and before[1] is member
        if before is not None and valid and member.code in self._diversities:
            return before[2]
        places = tuple(self._place(name, member, members, draw) for name in self._rules.dimensions)
        if member.code in self._diversities:
            self._cells[member.name] = self._widened, member, places
        return places

    def forget(self, name: str) -> None:
        """Forget what is kept about a member that left."""
        self._cells.pop(name, None)

    def _place(self, name: str, member: Member, members: Collection[Member], draw: Draw) -> int:
        # A metric of this name has priority over a feature that is computed here.
        if name in member.metrics:
            value = member.metrics[name]
        elif name == "complexity":
            value = float(len(member.code))
        elif name == "score":
            value = fitness_of(member.metrics, self._rules.dimensions)
        elif len(members) < 2:
            return 0
        else:
            value = self._diversity(member, members, draw)
        low, high = self.bounds.get(name, (value, value))
        if name not in self.bounds or not low <= value <= high:
            low, high = min(low, value), max(high, value)
            self.bounds[name] = low, high
            self._widened += 1
        scaled = 0.5 if low == high else (value - low) / (high - low)
        return max(0, min(self._bins - 1, int(min(1.0, max(0.0, scaled)) * self._bins)))

    def _diversity(self, member: Member, members: Collection[Member], draw: Draw) -> float:
        code = member.code
        if code in self._diversities:
            return self._diversities[code]
        if len(self.references) < self._rules.references:
            self.references = self._chosen([item.code for item in members], member.name, draw)
        found = [distance(code, other) for other in self.references if other != code]
        diversity = total(found) / len(found) if found else 0.0
        if len(self._diversities) >= self._rules.known_diversities:
            del self._diversities[next(iter(self._diversities))]
        self._diversities[code] = diversity
        return diversity

    def _chosen(self, codes: list[str], reason: str, draw: Draw) -> tuple[str, ...]:
        """Return codes that lie far apart: a random one, then always the farthest from those."""
        count = self._rules.references
        if len(codes) <= count:
            return tuple(codes)
        first = draw(f"references for {reason}").randint(0, len(codes) - 1)
        chosen = [codes.pop(first)]
        nearest = [distance(code, chosen[0]) for code in codes]
        while len(chosen) < count:
            # `max` keeps the first of equal ones.
            place = max(range(len(codes)), key=nearest.__getitem__)
            chosen.append(codes.pop(place))
            nearest.pop(place)
            nearest = [
                min(before, distance(code, chosen[-1]))
                for before, code in zip(nearest, codes, strict=True)
            ]
        return tuple(chosen)


def distance(code: str, other: str) -> float:
    """Return how different two programs look: in length, in lines and in characters used.

    The weights bring the distance to the range of an edit distance (OpenEvolve 0.4.1).
    """
    if code == other:
        return 0.0
    (length, lines, used), (length2, lines2, used2) = _shape(code), _shape(other)
    return abs(length - length2) * 0.1 + abs(lines - lines2) * 10 + len(used ^ used2) * 0.5


@lru_cache(maxsize=MAX_SHAPES)
def _shape(code: str) -> tuple[int, int, frozenset[str]]:
    return len(code), code.count("\n"), frozenset(code)


def near(cell: Sequence[int], steps: Sequence[int], bins: int) -> Cell:
    """Return the cell that lies some steps away, at most the edge of the grid."""
    moved = zip(cell, steps, strict=True)
    return tuple(max(0, min(bins - 1, place + step)) for place, step in moved)
