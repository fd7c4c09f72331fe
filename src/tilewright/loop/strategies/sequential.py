"""Sequential test-time scaling: one conversation, of which each prompt shows a part.

The method of Dr. Kernel (arXiv 2602.05885): all turns are stored outside of the model's context,
and a prompt shows the problem and a few of them.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tilewright.loop.context_windows import CONTEXTS
from tilewright.loop.driver import Strategy
from tilewright.loop.strategies.base import Options, Plan, Score, next_ask
from tilewright.records.events import Ask, Turn

__all__ = ["Sequential", "SequentialOptions", "make", "turns_of"]


def turns_of(user_turns: int, iterations: int, remain: int) -> int:
    """Return the turns that the released code's settings amount to.

    The first iteration makes `user_turns`; each later one keeps `remain` of all and makes the rest
    (`max_user_turns` 5, `iterations` 10, `remain_turns` 4: 14 turns).
    """
    return user_turns + (iterations - 1) * (user_turns - remain)


class SequentialOptions(Options):
    """The choice of the turns that a prompt shows."""

    context: Literal["vanilla", "last_w", "top_w", "best_window"] = "top_w"
    w: int = Field(default=4, ge=1)
    """Number of earlier turns that a prompt shows."""


class Sequential:
    """One request at a time. Lifetime: one run."""

    def __init__(self, plan: Plan, score: Score, options: SequentialOptions) -> None:
        self._plan = plan
        self._score = score
        self._choose, self._w = CONTEXTS[options.context], options.w
        self._waits = False
        self._answered: list[str] = []
        self._rewards: list[float | None] = []

    def ask(self, limit: int) -> list[Ask]:
        """Return one request after the result of the last one is known."""
        plan, number = self._plan, len(self._answered)
        if self._waits or limit < 1 or number == plan.turns:
            return []
        self._waits = True
        places = self._choose(self._rewards, self._w)
        shown = tuple(self._answered[place] for place in places)
        return [next_ask(plan, number, shown, tuple(self._answered[-1:]))]

    def tell(self, turn: Turn) -> None:
        """Store the result."""
        self._waits = False
        self._answered.append(turn.ask.id)
        self._rewards.append(self._score(turn))


def make(plan: Plan, score: Score) -> Strategy:
    """Return a new strategy; options: `context`, `w`."""
    return Sequential(plan, score, SequentialOptions.read("sequential", plan.options))
