"""What every strategy is given, and how one is made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from pydantic import Field

from tilewright.loop.driver import Strategy
from tilewright.records.base import Record
from tilewright.records.events import Ask, Turn

__all__ = ["Factory", "Plan", "Score", "next_ask", "ranks_before"]

Score = Callable[[Turn], float | None]
"""What a strategy maximises; `None` for a turn that was not judged, which is never the best."""


class Plan(Record):
    """One trajectory, or one search, over one problem."""

    problem: str
    sample: int = Field(default=0, ge=0)
    turns: int = Field(default=14, ge=1)
    """How many answers are asked for."""
    options: dict[str, Any] = Field(default_factory=dict)
    """What the strategy alone knows; it refuses names that it does not."""


class Factory(Protocol):
    """Makes a strategy."""

    def __call__(self, plan: Plan, score: Score) -> Strategy:
        """Return a fresh one.

        Raises:
            ConfigError: an option is unknown or out of range.
        """


def next_ask(
    plan: Plan, turn: int, shown: tuple[str, ...] = (), parents: tuple[str, ...] | None = None
) -> Ask:
    """Return the ask of a turn, whose id is the same in every sitting of a run.

    Args:
        plan: what it belongs to.
        turn: its number.
        shown: asks that its prompt shows, oldest first.
        parents: asks that it goes on from; default: `shown`.
    """
    return Ask(
        id=f"{plan.problem}#{plan.sample}.{turn}",
        problem=plan.problem,
        sample=plan.sample,
        turn=turn,
        parents=shown if parents is None else parents,
        shown_turns=shown,
    )


def ranks_before(one: tuple[float, Ask] | None, score: float | None) -> bool:
    """Tell whether the best so far stays: of equal ones the first does."""
    return score is None or (one is not None and one[0] >= score)
