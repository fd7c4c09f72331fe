"""Beam: the best few answers are each improved several times, round after round."""

from __future__ import annotations

from pydantic import Field

from tilewright.errors import ConfigError
from tilewright.loop.driver import Strategy
from tilewright.loop.strategies.base import Options, Plan, Score, next_ask
from tilewright.records.events import Ask, Turn


class BeamOptions(Options):
    """The width of the beam, and the number of improvements of each answer."""

    width: int = Field(default=4, ge=1)
    """Answers that are kept from round to round."""
    branches: int = Field(default=2, ge=1)
    """Requests that improve on each of them."""


class Beam:
    """Rounds of `width` times `branches` requests; a round begins after all results of the last."""

    def __init__(self, plan: Plan, score: Score, options: BeamOptions) -> None:
        self._plan, self._score, self._options = plan, score, options
        self._next = 0
        self._open = 0
        self._kept: list[tuple[float, int, str]] = []
        """Score, minus the turn so that of equal ones the first ranks higher, and the request."""
        self._round: list[tuple[str, ...]] = []
        """The parents of the requests of this round that were not issued yet."""

    def ask(self, limit: int) -> list[Ask]:
        """Return requests of this round, at most `limit`."""
        if not self._round and not self._open:
            branches, count = self._options.branches, self._options.width * self._options.branches
            parents = [(name,) for _, _, name in self._kept for _ in range(branches)]
            # With too few judged answers the other requests have no parent.
            self._round = [*parents, *[()] * (count - len(parents))]
        asks: list[Ask] = []
        while len(asks) < limit and self._round and self._next < self._plan.turns:
            asks.append(next_ask(self._plan, self._next, self._round.pop(0)))
            self._next += 1
        self._open += len(asks)
        return asks

    def tell(self, turn: Turn) -> None:
        """Keep the answer if it is among the best."""
        self._open -= 1
        score = self._score(turn)
        if score is not None:
            ranked = sorted([*self._kept, (score, -turn.ask.turn, turn.ask.id)], reverse=True)
            self._kept = ranked[: self._options.width]


def make(plan: Plan, score: Score) -> Strategy:
    """Return a new strategy; options: `width`, `branches`."""
    options = BeamOptions.read("beam", plan.options)
    least = options.width * options.branches
    if least > plan.turns:
        raise ConfigError(
            f"strategy beam, options 'width' and 'branches': one round of {options.width} answers "
            f"with {options.branches} improvements each needs at least {least} requests, and there "
            f"are {plan.turns}"
        )
    return Beam(plan, score, options)
