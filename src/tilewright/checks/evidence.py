"""What the evaluator saw, as plain values: the only thing that a check gets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from tilewright.languages.static_features import StaticFeatures
from tilewright.records import Finding, Label, Rules

__all__ = ["Check", "Evidence", "Observation"]


@dataclass(frozen=True)
class Evidence:
    """Everything that is known of one candidate when its verdict is due. Times in seconds."""

    language: str
    rules: Rules
    strict: bool
    features: StaticFeatures
    operator_counts: dict[str, int] = field(default_factory=dict)
    """Operators dispatched in one checked call; the contestant's own words."""
    launches: tuple[int, ...] = ()
    """Own launches in each checked call; the contestant's own words."""
    timed_launches: tuple[int, ...] = ()
    right_when_suppressed: bool | None = None
    mutated: tuple[str, ...] = ()
    alias: bool = False
    """Whether an output was a view of an input although the reference's is not."""
    timed_wrong: tuple[str, ...] = ()
    call_s: float = 0.0
    """Median time of a timed call of the candidate, in the case where it is largest."""
    untimed_cpu_s: float = 0.0
    """Median CPU seconds outside timed calls, beyond what the baseline's side used there."""
    disturbed: float = 0.0
    """Median share of a baseline's call that the candidate took: of a core, or of a GPU's time."""
    lacking_weights: tuple[str, ...] = ()
    passes_with_initial_weights: bool | None = None


@dataclass(frozen=True)
class Observation:
    """What one check made of the evidence."""

    findings: tuple[Finding, ...] = ()
    labels: tuple[Label, ...] = ()


class Check(Protocol):
    """One family of ways to cheat. A plug-in of the group `tilewright.checks`."""

    @property
    def name(self) -> str:
        """The name under which findings are filed."""

    def inspect(self, evidence: Evidence) -> Observation:
        """Return findings and labels; pure."""
