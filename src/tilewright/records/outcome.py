"""The verdict, as a union that has no impossible states."""

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
    """A finding of one check. A `decisive` finding decides the verdict; a `note` does not."""

    check: str
    code: str
    summary: str
    weight: Literal["note", "decisive"] = "note"
    evidence: dict[str, JsonValue] = Field(default_factory=dict)


class Label(Record):
    """A fact that does not change the verdict: a library call, a compiled graph."""

    name: str
    detail: str


class Correct(Record):
    """The outputs were correct on every judged case."""

    verdict: Literal["correct"] = "correct"


class Incorrect(Record):
    """An output differs from the reference by more than the tolerance."""

    verdict: Literal["incorrect"] = "incorrect"
    kind: Literal["count", "shape", "dtype", "values", "nonfinite", "mutation", "weights"]
    case: str
    message: str
    error_over_tolerance: float | None = Field(default=None, gt=0)
    """The largest error as a multiple of the tolerance; `None` if it is not a number."""


class Failed(Record):
    """The candidate could not be parsed, built or run, or did not finish."""

    verdict: Literal["failed"] = "failed"
    stage: Stage
    reason: FailedReason
    message: str


class Rejected(Record):
    """The candidate broke a rule; the findings name the rule and the evidence."""

    verdict: Literal["rejected"] = "rejected"
    findings: tuple[Finding, ...] = Field(min_length=1)


class Unjudged(Record):
    """There is no verdict. The candidate counts neither as zero nor in any average."""

    verdict: Literal["unjudged"] = "unjudged"
    reason: str
    message: str


Outcome = Annotated[
    Correct | Incorrect | Failed | Rejected | Unjudged, Field(discriminator="verdict")
]
