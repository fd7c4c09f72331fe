"""Inputs overwritten, outputs that are views of inputs."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.checks.evidence import Evidence, Observation
from tilewright.records import Finding
from tilewright.records.codes import FindingCode


class Inputs:
    """Inputs belong to the judge: a candidate may read them, never write or return them."""

    name = "inputs"

    def inspect(self, evidence: Evidence) -> Observation:
        """Reject overwritten inputs and outputs that share memory with inputs."""
        weight = "decisive" if evidence.strict else "note"
        findings = [
            Finding(check=self.name, code=code, summary=summary, weight=weight, evidence=values)
            for code, summary, values in _violations(evidence)
        ]
        return Observation(findings=tuple(findings))


def _violations(evidence: Evidence) -> Iterator[tuple[str, str, dict[str, bool | list[str]]]]:
    if evidence.mutated:
        summary = f"it overwrote {', '.join(evidence.mutated)}"
        yield FindingCode.INPUT_MUTATION, summary, {"overwritten": list(evidence.mutated)}
    if evidence.alias:
        summary = "an output is a view of an input; the reference's is not"
        yield FindingCode.ALIASED_OUTPUT, summary, {"alias": True}


CHECK = Inputs()
