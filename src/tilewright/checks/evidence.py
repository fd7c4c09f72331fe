"""The evidence that the supervisor hands to every check, as plain values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from tilewright.languages.static_features import StaticFeatures
from tilewright.records import Finding, Label, Rules
from tilewright.wire.names import OutputMemory


@dataclass(frozen=True)
class Evidence:
    """Everything that the evaluator knows of one candidate before its verdict. Times in seconds."""

    language: str
    rules: Rules
    strict: bool
    features: StaticFeatures
    operator_counts: dict[str, int] = field(default_factory=dict)
    """Operators dispatched in one checked call; self-reported by the runner."""
    launches: tuple[int, ...] = ()
    """Launches of the candidate's own kernels in each checked call; self-reported."""
    timed_launches: tuple[int, ...] = ()
    """The same for timed calls."""
    right_when_suppressed: bool | None = None
    """Whether the output is right under launch suppression; `None`: not tried, or not known."""
    mutated: tuple[str, ...] = ()
    """Inputs that the candidate overwrote although the problem does not allow it."""
    misplaced: tuple[OutputMemory, ...] = ()
    """Memory in which outputs lay although their caller could not keep them there."""
    timed_wrong: tuple[str, ...] = ()
    """One message for each timed call with a wrong output."""
    call_s: float = 0.0
    """Median time of a timed call of the candidate, in the case where it is largest."""
    untimed_cpu_s: float = 0.0
    """Lower quartile of the CPU seconds outside timed calls, beyond those of the baseline."""
    unfinished_work_s: float = 0.0
    """Seconds of work on a device behind the end of a timed call, beyond what is explained."""
    disturbed: float = 0.0
    """Median share of a baseline's call that the candidate took, of a core or of a GPU's time, in
    the last case."""
    lacking_weights: tuple[str, ...] = ()
    """Weights of the reference that the candidate does not hold by name or value."""
    passes_with_initial_weights: bool | None = None
    """Whether a wrong output was right with the weights of construction; `None`: not tried."""
    stale_after_first_call: bool = False
    """Whether a wrong output was right in the first call of a new process with the same weights.
    There it was wrong after another call; the judge compared all of them."""


@dataclass(frozen=True)
class Observation:
    """The findings and labels of one check."""

    findings: tuple[Finding, ...] = ()
    labels: tuple[Label, ...] = ()


class Check(Protocol):
    """One family of ways to cheat. A plug-in of the group `tilewright.checks`."""

    @property
    def name(self) -> str:
        """The name under which findings are filed."""

    def inspect(self, evidence: Evidence) -> Observation:
        """Return findings and labels; the answer depends on the evidence alone."""
