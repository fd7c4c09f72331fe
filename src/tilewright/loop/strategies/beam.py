"""Beam: the best few answers are each improved several times, round after round."""

from __future__ import annotations

from pydantic import Field

from tilewright.loop.driver import Strategy
from tilewright.loop.strategies.base import Plan, Score, next_ask
from tilewright.loop.strategies.options import Options
from tilewright.records.events import Ask, Turn

__all__ = ["Beam", "BeamOptions", "make"]


class BeamOptions(Options):
    """How wide, and how often each is improved."""

    width: int = Field(default=4, ge=1)
    """How many answers are kept from round to round."""
    branches: int = Field(default=2, ge=1)
    """How many answers each of them gets."""


class Beam:
    """Rounds of `width` times `branches` asks; a round begins when the last is told whole."""

    def __init__(self, plan: Plan, score: Score, options: BeamOptions) -> None:
        self._plan = plan
        self._score = score
        self._options = options
        self._next = 0
        self._open = 0
        self._kept: list[tuple[float, int, Ask]] = []
        """Score, minus the turn so that of equal ones the first ranks higher, and the ask."""
        self._round: list[tuple[str, ...]] = [()] * (options.width * options.branches)
        """What the asks of this round that are still to be made go on from."""

    def ask(self, limit: int) -> list[Ask]:
        """Return asks of this round, as many at once as there is room."""
        if not self._round and not self._open:
            self._begin_round()
        asks: list[Ask] = []
        while len(asks) < limit and self._round and self._next < self._plan.turns:
            plan, number, shown = self._plan, self._next, self._round.pop(0)
            self._next += 1
            asks.append(next_ask(plan, number, shown))
        self._open += len(asks)
        return asks

    def _begin_round(self) -> None:
        parents: list[tuple[str, ...]] = [(ask.id,) for _, _, ask in self._kept]
        count = self._options.width * self._options.branches
        # Until enough was judged to go on from, some begin anew.
        wanted = [parent for parent in parents for _ in range(self._options.branches)]
        self._round = (wanted + [()] * count)[:count]

    def tell(self, turn: Turn) -> None:
        """Keep it if it is among the best."""
        self._open -= 1
        score = self._score(turn)
        if score is not None:
            ranked = sorted([*self._kept, (score, -turn.ask.turn, turn.ask)], key=lambda k: k[:2])
            self._kept = ranked[::-1][: self._options.width]


def make(plan: Plan, score: Score) -> Strategy:
    """Return a fresh one; options: `width`, `branches`."""
    return Beam(plan, score, BeamOptions.read("beam", plan.options))
