"""Greedy: each request improves on the best answer so far."""

from __future__ import annotations

from tilewright.loop.driver import Strategy
from tilewright.loop.strategies.base import Options, Plan, Score, next_ask
from tilewright.records.events import Ask, Turn

__all__ = ["Greedy", "make"]


class Greedy:
    """Hill climbing with one request at a time. Lifetime: one run."""

    def __init__(self, plan: Plan, score: Score) -> None:
        self._plan = plan
        self._score = score
        self._next = 0
        self._waits = False
        self._best: tuple[float, str] | None = None

    def ask(self, limit: int) -> list[Ask]:
        """Return one request after the result of the last one is known."""
        if self._waits or limit < 1 or self._next == self._plan.turns:
            return []
        self._next, self._waits = self._next + 1, True
        shown = (self._best[1],) if self._best else ()
        return [next_ask(self._plan, self._next - 1, shown)]

    def tell(self, turn: Turn) -> None:
        """Keep the better answer; of equal ones the first."""
        self._waits = False
        score = self._score(turn)
        if score is not None and (self._best is None or score > self._best[0]):
            self._best = (score, turn.ask.id)


def make(plan: Plan, score: Score) -> Strategy:
    """Return a new strategy; it has no options."""
    Options.read("greedy", plan.options)
    return Greedy(plan, score)
