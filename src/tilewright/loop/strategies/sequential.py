"""Sequential test-time scaling: one conversation, of which each prompt shows a part.

The method of Dr. Kernel (arXiv 2602.05885): all turns are stored outside of the model's context,
and a prompt shows the problem and a few of them. A context gets the rewards in order of turns, with
`None` for a turn that was not judged, which no prompt shows. It returns the places of the shown
turns, oldest first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from pydantic import Field

from tilewright.loop.driver import Strategy
from tilewright.loop.strategies.base import Options, Plan, Score, next_ask
from tilewright.records.events import Ask, Turn

Rewards = Sequence[float | None]


def vanilla(rewards: Rewards, w: int) -> list[int]:  # noqa: ARG001 - one signature
    """Return all: the conversation grows until the model's context is full."""
    return [place for place, reward in enumerate(rewards) if reward is not None]


def last_w(rewards: Rewards, w: int) -> list[int]:
    """Return the newest `w`."""
    return vanilla(rewards, w)[-w:]


def top_w(rewards: Rewards, w: int) -> list[int]:
    """Return the `w` with the highest reward; of equal ones the newest (the paper's text)."""
    best = sorted(vanilla(rewards, w), key=lambda place: (rewards[place] or 0.0, place))
    return sorted(best[-w:])


def best_window(rewards: Rewards, w: int) -> list[int]:
    """Return `w` in a row with the largest sum; of equal ones the earliest (the released code)."""
    judged = vanilla(rewards, w)
    windows = [judged[start : start + w] for start in range(max(len(judged) - w, 0) + 1)]
    return max(windows, key=lambda places: sum(rewards[place] or 0.0 for place in places))


CONTEXTS: dict[str, Callable[[Rewards, int], list[int]]] = {
    function.__name__: function for function in (vanilla, last_w, top_w, best_window)
}


class SequentialOptions(Options):
    """The choice of the turns that a prompt shows."""

    context: Literal["vanilla", "last_w", "top_w", "best_window"] = "top_w"
    w: int = Field(default=4, ge=1)
    """Number of earlier turns that a prompt shows."""


class Sequential:
    """One request at a time, after the result of the last one. Lifetime: one run.

    `choose` returns the shown turns. A request improves on the last turn, or with `improves_shown`
    on these. With `narrows` the choice after one more turn is among the last choice and that turn,
    so that older turns need no comparison.
    """

    def __init__(
        self,
        plan: Plan,
        score: Score,
        choose: Callable[[Rewards], list[int]],
        *,
        improves_shown: bool = False,
        narrows: bool = False,
    ) -> None:
        self._plan, self._score, self._choose = plan, score, choose
        self._improves_shown, self._narrows = improves_shown, narrows
        self._pool: list[int] = []
        """Places of the turns that may be shown."""
        self._waits = False
        self._answered: list[str] = []
        self._rewards: list[float | None] = []

    def ask(self, limit: int) -> list[Ask]:
        """Return one request, or none while a result is missing."""
        number = len(self._answered)
        if self._waits or limit < 1 or number == self._plan.turns:
            return []
        self._waits = True
        chosen = self._choose([self._rewards[place] for place in self._pool])
        places = [self._pool[place] for place in chosen]
        if self._narrows:
            self._pool = places
        shown = tuple(self._answered[place] for place in places)
        parents = shown if self._improves_shown else tuple(self._answered[-1:])
        return [next_ask(self._plan, number, shown, parents)]

    def tell(self, turn: Turn) -> None:
        self._waits = False
        self._pool.append(len(self._answered))
        self._answered.append(turn.ask.id)
        self._rewards.append(self._score(turn))


def make(plan: Plan, score: Score) -> Strategy:
    """Return a new strategy; options: `context`, `w`."""
    options = SequentialOptions.read("sequential", plan.options)
    return Sequential(
        plan,
        score,
        lambda rewards: CONTEXTS[options.context](rewards, options.w),
        narrows=options.context in ("last_w", "top_w"),
    )
