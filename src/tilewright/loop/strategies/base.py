"""The arguments of a strategy, its options, and the requests that it issues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tilewright.errors import ConfigError
from tilewright.loop.driver import Strategy
from tilewright.records.base import Record
from tilewright.records.events import Ask, Turn

__all__ = ["Factory", "Options", "Plan", "Score", "next_ask"]

Score = Callable[[Turn], float | None]
"""Returns the number that a strategy maximises, or `None` for a turn that was not judged."""


class Plan(Record):
    """One trajectory, or one search, over one problem."""

    problem: str
    sample: int = Field(default=0, ge=0)
    turns: int = Field(default=14, ge=1)
    """Number of requests."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Options of this strategy. It refuses unknown names."""


class Factory(Protocol):
    """Makes a strategy."""

    def __call__(self, plan: Plan, score: Score) -> Strategy:
        """Return a new strategy.

        Raises:
            ConfigError: an option is unknown or out of range.
        """


class Options(BaseModel):
    """Base of the options of one strategy."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def read(cls, strategy: str, given: dict[str, Any]) -> Self:
        """Return the options that were given, with defaults for the others.

        Raises:
            ConfigError: one is unknown or out of range; the message lists the known ones.
        """
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            first = error.errors()[0]
            name = ".".join(str(part) for part in first["loc"])
            known = ", ".join(cls.model_fields) or "none"
            raise ConfigError(
                f"strategy {strategy}, option {name!r}: {first['msg']}; its options: {known}"
            ) from error


def next_ask(
    plan: Plan, turn: int, shown: tuple[str, ...] = (), parents: tuple[str, ...] | None = None
) -> Ask:
    """Return the request of a turn. A resumed run gives it the same id.

    `shown` lists the requests that its prompt shows, oldest first, and `parents` the requests that
    it improves on; default: `shown`.
    """
    return Ask(
        id=f"{plan.problem}#{plan.sample}.{turn}",
        problem=plan.problem,
        sample=plan.sample,
        turn=turn,
        parents=shown if parents is None else parents,
        shown_turns=shown,
    )
