"""Several searches in one run, over many problems and samples."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.loop.driver import Strategy
from tilewright.records.events import Ask, Turn

__all__ = ["RoundRobin"]


class RoundRobin:
    """Takes requests from each member in turn, so that no slow one delays the others."""

    def __init__(self, members: Sequence[Strategy]) -> None:
        self._members = list(members)
        self._next = 0
        self._issued_by: dict[str, Strategy] = {}

    def ask(self, limit: int) -> list[Ask]:
        """Return at most `limit` requests, one of each member before a second of any."""
        asks: list[Ask] = []
        idle = 0
        while len(asks) < limit and idle < len(self._members):
            member = self._members[self._next]
            self._next = (self._next + 1) % len(self._members)
            found = member.ask(1)
            idle = 0 if found else idle + 1
            self._issued_by |= {ask.id: member for ask in found}
            asks += found
        return asks

    def tell(self, turn: Turn) -> None:
        """Give the result to the member that issued the request."""
        self._issued_by.pop(turn.ask.id).tell(turn)
