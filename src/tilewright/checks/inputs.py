"""Inputs overwritten, outputs that are views of inputs."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.checks.evidence import Evidence, Observation
from tilewright.records import Finding

__all__ = ["CHECK"]


@dataclass(frozen=True)
class Inputs:
    """Inputs belong to the judge: they are read, never written or handed back."""

    name: str = "inputs"

    def inspect(self, evidence: Evidence) -> Observation:
        """Reject what overwrote inputs that the problem does not donate."""
        findings = []
        if evidence.mutated:
            findings.append(
                Finding(
                    check=self.name,
                    code="input_mutation",
                    summary=f"it overwrote {', '.join(evidence.mutated)}",
                    weight="decisive" if evidence.strict else "note",
                    evidence={"overwritten": list(evidence.mutated)},
                )
            )
        if evidence.alias:
            findings.append(
                Finding(
                    check=self.name,
                    code="aliased_output",
                    summary="an output is a view of an input; the reference's is not",
                    weight="decisive" if evidence.strict else "note",
                    evidence={"alias": True},
                )
            )
        return Observation(findings=tuple(findings))


CHECK = Inputs()
