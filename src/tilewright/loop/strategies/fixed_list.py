"""The simplest strategy: each ask of a list, once."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.records.events import Ask, Turn

__all__ = ["FixedList"]


class FixedList:
    """Asks everything in order, whatever comes of it. Lifetime: one run."""

    def __init__(self, asks: Sequence[Ask]) -> None:
        self._asks = tuple(asks)
        self._next = 0

    def ask(self, limit: int) -> list[Ask]:
        """Return the next asks."""
        asks = self._asks[self._next : self._next + limit]
        self._next += len(asks)
        return list(asks)

    def tell(self, turn: Turn) -> None:
        """Do nothing: no ask depends on an answer."""
