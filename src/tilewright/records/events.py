"""The event log of a run: what was asked and what came of it, in order, one JSON line each."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from tilewright.records.base import SCHEMA_VERSION, Record
from tilewright.records.outcome import Verdict
from tilewright.records.request import Protocol

__all__ = ["EVENT", "Ask", "Asked", "Begun", "Event", "Judgement", "Told", "Turn"]


class Ask(Record):
    """What is wanted next: an answer to a problem."""

    id: str
    """Names it within its run, also when the run is resumed."""
    problem: str
    sample: int = Field(default=0, ge=0)


class Judgement(Record):
    """One verdict on an answer, in short; `report` holds the whole."""

    protocol: Protocol
    verdict: Verdict
    reason: str = ""
    speedup: float | None = Field(default=None, gt=0)
    low: float | None = Field(default=None, gt=0)
    high: float | None = Field(default=None, gt=0)
    light: float | None = Field(default=None, ge=0)
    """Share of the speed of light, of the case that takes longest."""
    findings: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    seconds: float = Field(default=0.0, ge=0)
    """Wall time of the evaluation."""
    report: str = ""
    """Path of the report in the run folder; empty where there is none."""


class Turn(Record):
    """An ask that was answered and judged, once under each protocol."""

    ask: Ask
    language: str = ""
    source: str = ""
    """Digest of the answer."""
    judgements: tuple[Judgement, ...]


class Begun(Record):
    """The first line: what kind of run it is."""

    event: Literal["begun"] = "begun"
    schema_version: Literal[1] = SCHEMA_VERSION
    kind: str
    name: str
    problems: str
    protocols: tuple[Protocol, ...]
    language: str | None = None
    evaluator: str
    device: str
    weak: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Problems that the linter found weak strictly, and the answers that pass on them."""


class Asked(Record):
    """The strategy was asked for at most `limit` asks, and gave these."""

    event: Literal["asked"] = "asked"
    limit: int = Field(ge=1)
    asks: tuple[Ask, ...]


class Told(Record):
    """A turn ended, and the strategy was told."""

    event: Literal["told"] = "told"
    turn: Turn


Event = Annotated[Begun | Asked | Told, Field(discriminator="event")]
EVENT: TypeAdapter[Begun | Asked | Told] = TypeAdapter(Event)
