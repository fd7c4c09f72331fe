"""The budget of a run and its usage. A turn begins only if its largest cost fits."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import Field

from tilewright.records.base import Record
from tilewright.records.events import Turn


class Usage(Record):
    """Resources that turns used, or may use at most."""

    turns: int = Field(default=0, ge=0)
    tokens: int = Field(default=0, ge=0)
    """Tokens of prompts and replies together."""
    device_s: float = Field(default=0.0, ge=0)
    """Wall seconds of evaluations."""
    usd: float = Field(default=0.0, ge=0)

    def __add__(self, other: Usage) -> Usage:
        """Return the sum."""
        return Usage(**{name: value + getattr(other, name) for name, value in self})


class Budget(Record):
    """Most resources of a run. `None`: no limit."""

    turns: int | None = Field(default=None, ge=0)
    tokens: int | None = Field(default=None, ge=0)
    device_s: float | None = Field(default=None, ge=0)
    usd: float | None = Field(default=None, ge=0)

    def exceeded(self, spent: Usage) -> str:
        """Return the name of the first resource beyond this budget, or an empty text."""
        limits = ((name, most) for name, most in self if most is not None)
        return next((name for name, most in limits if getattr(spent, name) > most), "")


def usage_of(turns: Iterable[Turn]) -> Usage:
    """Return the usage of turns."""
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
