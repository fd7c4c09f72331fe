"""The observations of an evaluation's stages, for the verdict."""

from __future__ import annotations

from dataclasses import dataclass, field

from tilewright.evaluator.timing.case_timings import CaseTimes
from tilewright.records import (
    CaseResult,
    Ceilings,
    IsolationStatus,
    KernelTime,
    Label,
    Profile,
    StageRecord,
    Work,
)
from tilewright.wire.frames import Fields


@dataclass
class CorrectnessObservations:
    """Observations from the calls of one candidate, other than whether their outputs were right."""

    slots: dict[str, int] = field(default_factory=dict)
    """Where each case's inputs lay last: the second sample lies there again, with other values."""
    calls: list[Fields] = field(default_factory=list)
    """Shapes and dtypes of each nominal call of a declared case, without values."""
    operator_counts: dict[str, int] = field(default_factory=dict)
    launches: list[int] = field(default_factory=list)
    mutated: list[str] = field(default_factory=list)
    alias: bool = False


@dataclass
class Observations:
    """All observations of the stages. Each stage appends; only the verdict reads all of it."""

    correctness: CorrectnessObservations = field(default_factory=CorrectnessObservations)
    cases: list[CaseResult] = field(default_factory=list)
    times: list[CaseTimes] = field(default_factory=list)
    right_when_suppressed: bool | None = None
    lacking_weights: list[str] = field(default_factory=list)
    passes_with_initial_weights: bool | None = None
    profile: Profile | None = None
    kernels: list[KernelTime] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)
    stages: list[StageRecord] = field(default_factory=list)
    isolation: tuple[IsolationStatus, ...] = ()
    conditions: dict[str, Fields] = field(default_factory=dict)
    """The state of a GPU by moment, and what its runners were given."""
    work: list[Work] = field(default_factory=list)
    ceilings: Ceilings | None = None
    candidate_output: str = ""
