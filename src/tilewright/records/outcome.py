"""The verdict, as a union that has no impossible states."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from tilewright.records.base import Record
from tilewright.records.codes import (
    FailureReason,
    IncorrectKind,
    InputOrigin,
    Stage,
    UnjudgedReason,
)

Verdict = Literal["correct", "incorrect", "failed", "rejected", "unjudged"]


class Finding(Record):
    """A finding of one check. A `decisive` finding decides the verdict; a `note` does not."""

    check: str
    code: str
    """A `FindingCode`, or a code of a plug-in's check."""
    summary: str
    weight: Literal["note", "decisive"] = "note"
    evidence: dict[str, JsonValue] = Field(default_factory=dict)


class Label(Record):
    """A fact that does not change the verdict: a library call, a compiled graph."""

    name: str
    """A `LabelName`, or a name of a plug-in's check."""
    detail: str


class Correct(Record):
    """The outputs were correct on every judged case."""

    verdict: Literal["correct"] = "correct"


class Incorrect(Record):
    """An output differs from the reference by more than the tolerance."""

    verdict: Literal["incorrect"] = "incorrect"
    kind: IncorrectKind
    case: str
    """The case, and the input variation or `timed`."""
    inputs: InputOrigin | None = None
    """Where the inputs came from; `None`: not recorded."""
    message: str
    error_over_tolerance: float | None = Field(default=None, gt=0)
    """The largest error as a multiple of the tolerance; `None` if it is not a number."""


class Failed(Record):
    """The candidate could not be parsed, built or run, or did not finish."""

    verdict: Literal["failed"] = "failed"
    stage: Stage
    reason: FailureReason
    message: str
    exception: str | None = None
    """Self-reported name of the nearest built-in class of its exception, such as `RuntimeError`.
    `None`: it raised none, named none, or the report is older than this field. No verdict rests on
    it; the field `compiled` of KernelBench and KernelGYM does."""


class Rejected(Record):
    """The candidate broke a rule; the findings name the rule and the evidence."""

    verdict: Literal["rejected"] = "rejected"
    findings: tuple[Finding, ...] = Field(min_length=1)


class Unjudged(Record):
    """There is no verdict. The candidate counts neither as zero nor in any average."""

    verdict: Literal["unjudged"] = "unjudged"
    reason: UnjudgedReason
    message: str


Outcome = Annotated[
    Correct | Incorrect | Failed | Rejected | Unjudged, Field(discriminator="verdict")
]
