"""A policy that calls a Python function, for tests, demonstrations and programs of users."""

from __future__ import annotations

import runpy
from collections.abc import Callable, Sequence
from pathlib import Path

from tilewright.errors import PolicyError, boundary
from tilewright.loop.budget import Usage
from tilewright.loop.policies.base import Message, estimated_tokens
from tilewright.loop.random_values import chooser
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


def load_script(path: Path, seed: int = 0) -> Scripted:
    """Return the policy in a Python file; it runs in this process, as the user's own program.

    The file defines `answer(messages, ask) -> str`, or `propose(messages, draw) -> str`. The latter
    does not see the request. Its generator follows from the seed and the request's id, so that a
    resumed run gets the replies that it would have had.

    Raises:
        PolicyError: it cannot be loaded or defines neither function.
    """
    if not path.is_file():
        raise PolicyError(f"policy {path}: no such file; give the path of a Python file")
    with boundary(PolicyError, f"policy {path}"):
        names = runpy.run_path(str(path), run_name="tilewright_policy")
    write, propose = names.get("answer"), names.get("propose")
    if callable(propose):

        def write(messages: Sequence[Message], ask: Ask) -> str:
            return str(propose(messages, chooser(seed, ask.id, "reply")))

    if not callable(write):
        raise PolicyError(
            f"policy {path}: it defines neither answer(messages, ask) nor propose(messages, draw)"
        )
    return Scripted(write, f"scripted:{path.name}")
