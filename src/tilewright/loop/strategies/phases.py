"""Strategies that work in phases: all results of one phase are there before the next begins."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any

from tilewright.loop.strategies.base import Plan, next_ask
from tilewright.records.events import Ask, Turn

Batch = Sequence[Mapping[str, Any]]
"""The requests of a phase: the arguments of `next_ask` for each, but for plan and turn."""
Search = Generator[Batch, list[Turn], None]
"""Yields a phase and gets its results in the order of the requests."""


class Phases:
    """Runs a search that is written as a generator. Lifetime: one run; replay rebuilds it.

    Requests of a phase may be answered at the same time and in any order.
    """

    def __init__(self, plan: Plan, search: Search) -> None:
        self._plan, self._search = plan, search
        self._next = 0
        self._queue = list(next(search, ()))
        self._order: list[str] = []
        self._results: dict[str, Turn] = {}

    def ask(self, limit: int) -> list[Ask]:
        """Return requests of the phase; none while results of it are missing."""
        if not self._queue and len(self._results) == len(self._order):
            self._begin_phase()
        asks: list[Ask] = []
        while self._queue and len(asks) < limit and self._next < self._plan.turns:
            ask = next_ask(self._plan, self._next, **self._queue.pop(0))
            self._order.append(ask.id)
            asks.append(ask)
            self._next += 1
        return asks

    def tell(self, turn: Turn) -> None:
        """Keep a result until those of the whole phase are there."""
        self._results[turn.ask.id] = turn

    def _begin_phase(self) -> None:
        while not self._queue and self._next < self._plan.turns:
            results = [self._results[name] for name in self._order]
            self._order, self._results = [], {}
            try:
                self._queue = list(self._search.send(results))
            except StopIteration:
                return
