"""Weights folded into constants, state of a first call, and weights that are not there."""

from __future__ import annotations

from tilewright.checks.evidence import Evidence, Observation
from tilewright.records import Finding, Label
from tilewright.records.codes import FindingCode, LabelName


class Weights:
    """A module must follow its weights and its inputs, and not what it kept of earlier ones."""

    name = "weights"

    def inspect(self, evidence: Evidence) -> Observation:
        """Note an output that is right with the initial weights or in a first call alone."""
        if evidence.passes_with_initial_weights:
            finding = Finding(
                check=self.name,
                code=FindingCode.WEIGHTS_CONSTANT_FOLDED,
                summary="right with the weights it was built with, wrong once others are loaded",
                weight="note",
                evidence={"lacking": list(evidence.lacking_weights)},
            )
            return Observation(findings=(finding,))
        if evidence.stale_after_first_call:
            finding = Finding(
                check=self.name,
                code=FindingCode.STALE_AFTER_FIRST_CALL,
                summary="right in a first call, wrong after another call with the same weights",
                weight="note",
            )
            return Observation(findings=(finding,))
        if evidence.lacking_weights:
            detail = "not found by name or value: " + ", ".join(evidence.lacking_weights)
            return Observation(
                labels=(Label(name=LabelName.WEIGHTS_NOT_REPLACED, detail=detail[:300]),)
            )
        return Observation()


CHECK = Weights()
