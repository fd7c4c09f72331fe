"""Greedy: each ask goes on from the best answer so far."""

from __future__ import annotations

from tilewright.loop.driver import Strategy
from tilewright.loop.strategies.base import Plan, Score, next_ask, ranks_before
from tilewright.loop.strategies.options import Options
from tilewright.records.events import Ask, Turn

__all__ = ["Greedy", "make"]


class Greedy:
    """Hill climbing, one step after the other. Lifetime: one run."""

    def __init__(self, plan: Plan, score: Score) -> None:
        self._plan = plan
        self._score = score
        self._next = 0
        self._waits = False
        self._best: tuple[float, Ask] | None = None

    def ask(self, limit: int) -> list[Ask]:
        """Return one ask, once the one before it is told."""
        if self._waits or limit < 1 or self._next == self._plan.turns:
            return []
        plan, number = self._plan, self._next
        self._next, self._waits = number + 1, True
        shown = (self._best[1].id,) if self._best else ()
        return [next_ask(plan, number, shown)]

    def tell(self, turn: Turn) -> None:
        """Keep the better one."""
        self._waits = False
        score = self._score(turn)
        if score is not None and not ranks_before(self._best, score):
            self._best = (score, turn.ask)


def make(plan: Plan, score: Score) -> Strategy:
    """Return a fresh one; it has no options."""
    Options.read("greedy", plan.options)
    return Greedy(plan, score)
