"""What idles between the candidates of one problem: its judge and, on a GPU, its baselines."""

from __future__ import annotations

from dataclasses import dataclass, field

from tilewright.evaluator.processes import Child
from tilewright.evaluator.sides import Side

__all__ = ["MOST_PARKED", "Parked", "Warm"]

MOST_PARKED = 2
"""How many processes of one baseline are kept: one a pair of processes of a short call."""


class Parked:
    """Baselines that are alive and in no use, by name. Lifetime: that of their judge."""

    def __init__(self) -> None:
        self._ready: dict[str, list[Side]] = {}
        self._served: dict[str, list[Side]] = {}
        self._dead: list[Side] = []

    def add(self, name: str, side: Side) -> None:
        """Set a side aside that has served in the evaluation under way."""
        self._served.setdefault(name, []).append(side)

    def take(self, name: str) -> Side | None:
        """Return a living side, or `None` where a fresh one is due.

        One that has not served yet, or else, once there are enough, who served longest ago.
        """
        served = self._served.get(name, [])
        for sides in (self._ready.get(name, []), served if len(served) >= MOST_PARKED else []):
            while sides:
                side = sides.pop(0)
                if side.child.alive():
                    return side
                self._dead.append(side)
        return None

    def rest(self) -> list[Side]:
        """Begin anew with as many as are of use; return the others, who are to end."""
        surplus, self._dead = self._dead, []
        for name in {*self._ready, *self._served}:
            sides = self._served.get(name, []) + self._ready.get(name, [])
            self._ready[name] = sides[:MOST_PARKED]
            surplus += sides[MOST_PARKED:]
        self._served.clear()
        return surplus

    def drain(self) -> list[Side]:
        """Keep nobody; return all."""
        surplus = self.rest()
        for sides in self._ready.values():
            surplus += sides
        self._ready.clear()
        return surplus

    def close(self) -> None:
        """End all of them."""
        sides = self.drain()
        for side in sides:
            side.child.doom()
        for side in sides:
            side.close()


@dataclass
class Warm:
    """An idle judge with what is parked beside it."""

    judge: Child
    parked: Parked = field(default_factory=Parked)

    def kill(self) -> None:
        """End the judge; what has mapped its memory ends first."""
        self.parked.close()
        self.judge.kill()
