"""Best of n: independent answers, of which the best counts."""

from __future__ import annotations

from tilewright.loop.driver import Strategy
from tilewright.loop.strategies.base import Plan, Score, next_ask
from tilewright.loop.strategies.options import Options
from tilewright.records.events import Ask, Turn

__all__ = ["BestOfN", "make"]


class BestOfN:
    """Asks the same thing n times, as many at once as there is room. Lifetime: one run."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._next = 0

    def ask(self, limit: int) -> list[Ask]:
        """Return the next asks; none depends on another."""
        numbers = range(self._next, min(self._next + limit, self._plan.turns))
        self._next += len(numbers)
        plan = self._plan
        return [next_ask(plan, n) for n in numbers]

    def tell(self, turn: Turn) -> None:
        """Do nothing: no ask depends on an answer."""


def make(plan: Plan, score: Score) -> Strategy:  # noqa: ARG001 - one signature
    """Return a fresh one; it has no options."""
    Options.read("best_of_n", plan.options)
    return BestOfN(plan)
