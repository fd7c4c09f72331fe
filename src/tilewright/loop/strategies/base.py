"""The interface of a strategy, its options, and two strategies that others are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tilewright.errors import ConfigError
from tilewright.loop.driver import Strategy
from tilewright.records.base import Record
from tilewright.records.events import Ask, Turn

Score = Callable[[Turn], float | None]
"""Returns the number that a strategy maximises, or `None` for a turn that was not judged."""


class Plan(Record):
    """One trajectory, or one search, over one problem."""

    problem: str
    sample: int = Field(default=0, ge=0)
    turns: int = Field(default=14, ge=1)
    """Number of requests."""
    seed: int = 0
    """Seed of its random values (`tilewright.loop.random_values`)."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Options of this strategy. It refuses unknown names."""


Factory = Callable[[Plan, Score], Strategy]
"""Makes a strategy. It raises `ConfigError` if an option is unknown or out of range."""


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
            name, fault = _fault(cls, error)
            known = ", ".join(cls.model_fields) or "none"
            raise ConfigError(
                f"strategy {strategy}, option {name!r}: {fault}; its options: {known}"
            ) from error


LIMITS = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}


def _fault(options: type[Options], error: ValidationError) -> tuple[str, str]:
    """Return the name of the first option that is wrong, and what is wrong with it."""
    first = error.errors()[0]
    name, given = str(first["loc"][0]), first["input"]
    if name not in options.model_fields:
        return name, "there is no such option"
    context = first.get("ctx", {})
    for key, words in LIMITS.items():
        if key in context:
            return name, f"{given!r} is out of range; give {words} {context[key]}"
    if "expected" in context:
        return name, f"{given!r} is no valid value; give {context['expected']}"
    return name, f"{given!r} is no valid value; its type is {options.model_fields[name].annotation}"


def next_ask(
    plan: Plan,
    turn: int,
    shown: tuple[str, ...] = (),
    parents: tuple[str, ...] | None = None,
    **more: Any,  # noqa: ANN401 - fields of several types
) -> Ask:
    """Return the request of a turn. A resumed run gives it the same id.

    `shown` lists the requests that its prompt shows, oldest first, and `parents` the requests that
    it improves on; default: `shown`. `more` are further fields of the request.
    """
    return Ask(
        id=f"{plan.problem}#{plan.sample}.{turn}",
        problem=plan.problem,
        sample=plan.sample,
        turn=turn,
        parents=shown if parents is None else parents,
        shown_turns=shown,
        **more,
    )


@dataclass(frozen=True)
class ArchiveCell:
    """A place of an archive and the candidate there, for views."""

    sample: int
    """Number of the trajectory."""
    place: str
    """For example `island 2, complexity 3, diversity 0`."""
    writer: str
    """The request that wrote the candidate."""


def cells_of(strategy: object) -> list[ArchiveCell]:
    """Return the cells of a strategy's archive; none if it shows no archive."""
    show = getattr(strategy, "cells", None)
    return show() if show is not None else []


class FixedList:
    """Issues each request of a list once, in order. Lifetime: one run."""

    def __init__(self, asks: Sequence[Ask]) -> None:
        self._left = list(asks)

    def ask(self, limit: int) -> list[Ask]:
        asks, self._left = self._left[:limit], self._left[limit:]
        return asks

    def tell(self, turn: Turn) -> None:
        """Do nothing: no request depends on a result."""


class RoundRobin:
    """Takes requests from each member in turn, so that no slow one delays the others."""

    def __init__(self, members: Sequence[Strategy]) -> None:
        self._members = list(members)
        self._next = 0
        self._issued_by: dict[str, Strategy] = {}

    def ask(self, limit: int) -> list[Ask]:
        """Return at most `limit` requests, one of each member before a second of any."""
        asks: list[Ask] = []
        idle = 0
        while len(asks) < limit and idle < len(self._members):
            member = self._members[self._next]
            self._next = (self._next + 1) % len(self._members)
            found = member.ask(1)
            idle = 0 if found else idle + 1
            self._issued_by |= {ask.id: member for ask in found}
            asks += found
        return asks

    def cells(self) -> list[ArchiveCell]:
        """Return the archives of all members."""
        return [cell for member in self._members for cell in cells_of(member)]

    @property
    def stopped(self) -> str:
        """Return the rule by which a member stopped; empty if none did."""
        reasons = (getattr(member, "stopped", "") for member in self._members)
        return next(filter(None, reasons), "")

    def tell(self, turn: Turn) -> None:
        """Give the result to the member that issued the request."""
        self._issued_by.pop(turn.ask.id).tell(turn)
