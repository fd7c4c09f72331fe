"""The simplest strategy: it issues each request of a list once."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.records.events import Ask, Turn

__all__ = ["FixedList"]


class FixedList:
    """Issues all requests in order; results change nothing. Lifetime: one run."""

    def __init__(self, asks: Sequence[Ask]) -> None:
        self._asks = tuple(asks)
        self._next = 0

    def ask(self, limit: int) -> list[Ask]:
        """Return the next requests."""
        asks = self._asks[self._next : self._next + limit]
        self._next += len(asks)
        return list(asks)

    def tell(self, turn: Turn) -> None:
        """Do nothing: no request depends on a result."""
