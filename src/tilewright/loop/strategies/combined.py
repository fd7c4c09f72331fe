"""Several searches at once, over many problems and samples, that share the room in turn."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.loop.driver import Strategy
from tilewright.records.events import Ask, Turn

__all__ = ["RoundRobin"]


class RoundRobin:
    """Asks each in turn, so that one whose turns are slow holds up nobody. Lifetime: one run."""

    def __init__(self, members: Sequence[Strategy]) -> None:
        self._members = list(members)
        self._next = 0
        self._asked_by: dict[str, int] = {}

    def ask(self, limit: int) -> list[Ask]:
        """Return at most `limit` asks, one of each member before a second of any."""
        asks: list[Ask] = []
        idle = 0
        while len(asks) < limit and idle < len(self._members):
            place = self._next
            self._next = (place + 1) % len(self._members)
            found = self._members[place].ask(1)
            idle = 0 if found else idle + 1
            for ask in found:
                self._asked_by[ask.id] = place
                asks.append(ask)
        return asks

    def tell(self, turn: Turn) -> None:
        """Tell who asked."""
        self._members[self._asked_by.pop(turn.ask.id)].tell(turn)
