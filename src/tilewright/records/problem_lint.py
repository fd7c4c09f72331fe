"""What the linter found of a problem: whether an answer that does no work would pass."""

from __future__ import annotations

from pydantic import Field

from tilewright.records.base import Record
from tilewright.records.problem import Problem
from tilewright.records.request import Protocol

__all__ = ["CaseHealth", "Health", "is_weak", "memory_of", "published_name"]


class CaseHealth(Record):
    """One case. Names of degenerate answers that pass: by published tolerance, and strictly."""

    case: str
    official: dict[str, tuple[str, ...]]
    """By tolerance, as `0.0001`, or by the name of another published rule."""
    strict: tuple[str, ...]
    random: bool
    """Whether two forward seeds give two outputs."""
    deterministic: bool
    """Whether two calls of the reference agree to the bit."""
    call_s: float = Field(ge=0)
    """How long one call of the reference takes."""
    input_bytes: int = Field(ge=0)
    output_bytes: int = Field(ge=0)
    peak_bytes: int | None = Field(default=None, ge=0)
    """On a GPU: memory that one call of the reference, with copies of its inputs, allocates at its
    peak. The weights are not in it."""


class Health(Record):
    """A problem's health; `failed` says why it could not be found out."""

    problem: str
    problem_digest: str
    device: str
    cases: tuple[CaseHealth, ...] = ()
    failed: str = ""


def memory_of(case: CaseHealth) -> int:
    """Return the bytes of a case: at the peak where that is known, else inputs and outputs."""
    return case.input_bytes + case.output_bytes if case.peak_bytes is None else case.peak_bytes


def published_name(problem: Problem) -> str:
    """Return under which name `CaseHealth.official` holds the problem's own published rule."""
    if problem.thresholds is not None or problem.official_comparison != "allclose":
        return problem.official_comparison if problem.thresholds is None else "quantized"
    return f"{problem.tolerance or 1e-2:g}"


def is_weak(health: Health, protocol: Protocol, published: str = "") -> tuple[str, ...]:
    """Return which degenerate answers pass on every case under a protocol; none: it is sound.

    Args:
        health: what the linter found.
        protocol: `strict` or `official`.
        published: under `official`, the name of the rule.
    """
    found: set[str] | None = None
    for case in health.cases:
        names = case.strict
        if protocol == "official":
            names = case.official.get(published, ())
        found = set(names) if found is None else found & set(names)
    return tuple(sorted(found or ()))
