"""What every policy offers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from tilewright.loop.budget import Usage
from tilewright.records.base import Record, digest_text
from tilewright.records.events import Ask, Reply

__all__ = ["Message", "Policy", "digest_of", "estimated_tokens"]

CHARACTERS_PER_TOKEN = 3
"""Fewer than code has in any tokenizer that we know: an estimate is to be too large."""


class Message(Record):
    """One message of a prompt."""

    role: Literal["system", "user", "assistant"]
    text: str


class Policy(Protocol):
    """Writes replies. Called from several threads at once."""

    name: str

    def answer(self, messages: Sequence[Message], ask: Ask) -> Reply:
        """Return a reply.

        Raises:
            PolicyError: it cannot answer, also after what retries it makes.
        """

    def max_cost(self, prompt_tokens: int) -> Usage:
        """Return what one reply to a prompt of so many tokens uses at most."""

    def close(self) -> None:
        """Let go of what it holds."""


def digest_of(messages: Sequence[Message]) -> str:
    """Return a digest of a prompt."""
    return digest_text("\0".join(f"{item.role}\0{item.text}" for item in messages))


def estimated_tokens(messages: Sequence[Message]) -> int:
    """Return about how many tokens a prompt has, rather too many."""
    return sum(len(item.text) // CHARACTERS_PER_TOKEN + 8 for item in messages)
