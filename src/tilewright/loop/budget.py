"""What a run may use, and what it has used. A turn is begun only if all of it fits."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import Field

from tilewright.records.base import Record
from tilewright.records.events import Turn

__all__ = ["Budget", "Usage", "usage_of"]


class Usage(Record):
    """What turns have used, or may use at most."""

    turns: int = Field(default=0, ge=0)
    tokens: int = Field(default=0, ge=0)
    """Tokens of prompts and replies together."""
    device_s: float = Field(default=0.0, ge=0)
    """Wall seconds of evaluations."""
    usd: float = Field(default=0.0, ge=0)

    def __add__(self, other: Usage) -> Usage:
        """Return both together."""
        return Usage(
            turns=self.turns + other.turns,
            tokens=self.tokens + other.tokens,
            device_s=self.device_s + other.device_s,
            usd=self.usd + other.usd,
        )

    def times(self, count: int) -> Usage:
        """Return `count` times as much."""
        return Usage(
            turns=count * self.turns,
            tokens=count * self.tokens,
            device_s=count * self.device_s,
            usd=count * self.usd,
        )


class Budget(Record):
    """What a run may use at most; `None`: as much as it likes."""

    turns: int | None = Field(default=None, ge=0)
    tokens: int | None = Field(default=None, ge=0)
    device_s: float | None = Field(default=None, ge=0)
    usd: float | None = Field(default=None, ge=0)

    def exceeded(self, spent: Usage) -> str:
        """Return what would be used beyond this, or nothing."""
        for name in type(self).model_fields:
            most = getattr(self, name)
            if most is not None and getattr(spent, name) > most:
                return name
        return ""

    def room(self, spent: Usage, running: int, turn: Usage, most: int) -> int:
        """Return how many more turns may begin, at most `most`.

        Args:
            spent: by turns that have ended.
            running: how many are under way.
            turn: what one turn uses at most.
            most: where counting ends.
        """
        count = 0
        while count < most and not self.exceeded(spent + turn.times(running + count + 1)):
            count += 1
        return count


def usage_of(turns: Iterable[Turn]) -> Usage:
    """Return what turns have used."""
    total = Usage()
    for turn in turns:
        reply = turn.reply
        total += Usage(
            turns=1,
            tokens=reply.prompt_tokens + reply.reply_tokens if reply else 0,
            device_s=sum(item.seconds for item in turn.judgements),
            usd=reply.usd if reply else 0.0,
        )
    return total
