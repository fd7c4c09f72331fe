"""Inputs overwritten, outputs in memory that is not their own."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.checks.evidence import Evidence, Observation
from tilewright.records import Finding
from tilewright.records.codes import FindingCode
from tilewright.wire.names import OutputMemory


class Inputs:
    """Inputs belong to the judge, and outputs to the caller, who keeps some of them."""

    name = "inputs"

    def inspect(self, evidence: Evidence) -> Observation:
        """Reject overwritten inputs, and outputs that share memory with anything else."""
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
    if OutputMemory.INPUT in evidence.misplaced:
        summary = "an output is a view of an input; the reference's is not"
        yield FindingCode.ALIASED_OUTPUT, summary, {"alias": True}
    places = [place.value for place in evidence.misplaced if place is not OutputMemory.INPUT]
    if places:
        summary = f"an output lies in {', '.join(places)}; the reference's does not"
        yield FindingCode.MISPLACED_OUTPUT, summary, {"places": places}


CHECK = Inputs()
