"""The interface of every policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from tilewright.loop.budget import Usage
from tilewright.records.base import Record, digest_text
from tilewright.records.events import Ask, Reply

CHARACTERS_PER_TOKEN = 3
"""Less than for code in any known tokenizer, so that an estimate is too large, never too small."""


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
            PolicyError: it cannot answer, also after its retries.
        """

    def max_cost(self, prompt_tokens: int) -> Usage:
        """Return the largest usage of one reply to a prompt of that many tokens."""

    def close(self) -> None:
        """Release connections, threads and memory."""


def digest_of(messages: Sequence[Message]) -> str:
    """Return a digest of a prompt."""
    return digest_text("\0".join(f"{item.role}\0{item.text}" for item in messages))


def estimated_tokens(messages: Sequence[Message]) -> int:
    """Return an upper estimate of the tokens of a prompt."""
    return sum(len(item.text) // CHARACTERS_PER_TOKEN + 8 for item in messages)
