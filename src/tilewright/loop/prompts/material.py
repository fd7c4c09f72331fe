"""The material of a prompt: everything that a form may show, as it was at the request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tilewright.loop.estimates import EMPTY, Estimate
from tilewright.records import Problem
from tilewright.records.events import Form, Turn


@dataclass(frozen=True)
class Document:
    """A text that a prompt shows together with programs: a module of the knowledge base, say."""

    digest: str
    title: str
    text: str


@dataclass(frozen=True)
class Material:
    """One prompt's content. No form reads anything else."""

    problem: Problem
    language: str | None = None
    form: Form = "conversation"
    shown: Sequence[Turn] = ()
    parents: Sequence[Turn] = ()
    estimates: Mapping[str, Estimate] = field(default_factory=dict)
    """Estimates of shown and parent turns, by request."""
    failed: Sequence[str] = ()
    """Reasons why earlier attempts on the first parent came to nothing, oldest first."""
    documents: Sequence[Document] = ()
    instruction: str = ""
    is_choice: bool = False
    """Whether the instruction asks for one of several choices, and not for code."""
    override: str = ""
    """Words of others that replace ours in the last message."""

    def estimate(self, turn: Turn) -> Estimate:
        """Return the estimate of a turn; an empty one if nothing was measured."""
        return self.estimates.get(turn.ask.id, EMPTY)
