"""The result of the problem linter: whether an answer that does no work would pass."""

from __future__ import annotations

from pydantic import Field

from tilewright.records.base import Record
from tilewright.records.problem import Problem
from tilewright.records.request import Protocol


class CaseHealth(Record):
    """One case, and the degenerate answers that pass by published and by strict rules."""

    case: str
    official: dict[str, tuple[str, ...]]
    """By tolerance, such as `0.0001`, or by the name of another published rule."""
    strict: tuple[str, ...]
    random: bool
    """Whether two forward seeds give different outputs."""
    deterministic: bool
    """Whether two calls of the reference give identical bits."""
    call_s: float = Field(ge=0)
    """Time of one call of the reference."""
    input_bytes: int = Field(ge=0)
    output_bytes: int = Field(ge=0)
    peak_bytes: int | None = Field(default=None, ge=0)
    """On a GPU: peak memory of one call of the reference, with copies of its inputs and without the
    weights."""


class Health(Record):
    """The result for a problem; `failed` says why the linter could not run."""

    problem: str
    problem_digest: str
    device: str
    cases: tuple[CaseHealth, ...] = ()
    failed: str = ""


def memory_of(case: CaseHealth) -> int:
    """Return the peak memory of a case, or the bytes of its inputs and outputs."""
    return case.input_bytes + case.output_bytes if case.peak_bytes is None else case.peak_bytes


def published_name(problem: Problem) -> str:
    """Return the name of the problem's published rule in `CaseHealth.official`."""
    if problem.thresholds is not None or problem.official_comparison != "allclose":
        return problem.official_comparison if problem.thresholds is None else "quantized"
    return f"{problem.tolerance or 1e-2:g}"


def is_weak(health: Health, protocol: Protocol, published: str = "") -> tuple[str, ...]:
    """Return the degenerate answers that pass every case under a protocol; none: it is sound.

    `published` is the name of the rule under `official`.
    """
    passing = [
        set(case.official.get(published, ()) if protocol == "official" else case.strict)
        for case in health.cases
    ]
    return tuple(sorted(set.intersection(*passing))) if passing else ()
