"""The verdict, as a union in which no impossible state can be written down."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from tilewright.records.base import JsonValue, Record

__all__ = [
    "Correct",
    "Failed",
    "FailedReason",
    "Finding",
    "Incorrect",
    "Label",
    "Outcome",
    "Rejected",
    "Stage",
    "Unjudged",
    "Verdict",
]

Verdict = Literal["correct", "incorrect", "failed", "rejected", "unjudged"]
Stage = Literal[
    "build", "start_judge", "load", "correctness", "launch_suppression", "timing", "shutdown"
]
FailedReason = Literal[
    "syntax_error",
    "build",
    "exception",
    "crash",
    "unexpected_exit",
    "timeout",
    "out_of_memory",
    "protocol_violation",
    "memory_corruption",
]


class Finding(Record):
    """What one check saw. `decisive` findings decide the verdict, `notes` only inform."""

    check: str
    code: str
    summary: str
    weight: Literal["note", "decisive"] = "note"
    evidence: dict[str, JsonValue] = Field(default_factory=dict)


class Label(Record):
    """A fact without blame: a library call, a compiled graph, lower precision."""

    name: str
    detail: str


class Correct(Record):
    """Right on every case that was judged."""

    verdict: Literal["correct"] = "correct"


class Incorrect(Record):
    """An output differs from the reference beyond the bound."""

    verdict: Literal["incorrect"] = "incorrect"
    kind: Literal["count", "shape", "dtype", "values", "nonfinite", "mutation", "weights"]
    case: str
    message: str
    error_over_tolerance: float | None = Field(default=None, gt=0)
    """The largest error in units of the allowed one; `None` where no number exists."""


class Failed(Record):
    """The candidate did not deliver: it could not be parsed, built, run or finished."""

    verdict: Literal["failed"] = "failed"
    stage: Stage
    reason: FailedReason
    message: str


class Rejected(Record):
    """The candidate broke a rule; the findings say which and how that was seen."""

    verdict: Literal["rejected"] = "rejected"
    findings: tuple[Finding, ...] = Field(min_length=1)


class Unjudged(Record):
    """We could not tell. Never zero, never a penalty, never averaged in."""

    verdict: Literal["unjudged"] = "unjudged"
    reason: str
    message: str


Outcome = Annotated[
    Correct | Incorrect | Failed | Rejected | Unjudged, Field(discriminator="verdict")
]
