"""A policy that calls a Python function, for tests, demonstrations and programs of users."""

from __future__ import annotations

import runpy
from collections.abc import Callable, Sequence
from pathlib import Path

from tilewright.errors import PolicyError, boundary
from tilewright.loop.budget import Usage
from tilewright.loop.policies.base import Message, estimated_tokens
from tilewright.records.events import Ask, Reply


class Scripted:
    """Calls a function. Lifetime: one run."""

    def __init__(
        self, write: Callable[[Sequence[Message], Ask], str], name: str = "scripted"
    ) -> None:
        self.name = name
        self._write = write

    def answer(self, messages: Sequence[Message], ask: Ask) -> Reply:
        with boundary(PolicyError, f"policy {self.name}, {ask.id}"):
            text = self._write(messages, ask)
        tokens = estimated_tokens([Message(role="assistant", text=text)])
        prompt = estimated_tokens(messages)
        return Reply(text=text, model=self.name, prompt_tokens=prompt, reply_tokens=tokens)

    def max_cost(self, prompt_tokens: int) -> Usage:
        """Return the usage of a prompt; the length of the reply is unknown."""
        return Usage(tokens=prompt_tokens)

    def close(self) -> None:
        """Do nothing."""


def load_script(path: Path) -> Scripted:
    """Return the policy in a Python file that defines `answer(messages, ask) -> str`.

    The file is the user's own program and runs in this process.

    Raises:
        PolicyError: it cannot be loaded or defines no such function.
    """
    with boundary(PolicyError, f"policy {path}"):
        write = runpy.run_path(str(path), run_name="tilewright_policy").get("answer")
    if not callable(write):
        raise PolicyError(f"policy {path}: it defines no function answer(messages, ask)")
    return Scripted(write, f"scripted:{path.name}")
