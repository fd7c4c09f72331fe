"""Source that hides what it does: assembled names, encoded text, patched libraries."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.checks.evidence import Evidence, Observation
from tilewright.records import Finding

__all__ = ["CHECK"]

KINDS = {
    "assembled_names": "assembled names",
    "decoding": "encoded text",
    "patches": "patches a library",
    "proc_access": "reads /proc",
    "token_pasting": "pastes tokens",
    "outside_includes": "includes foreign files",
    "introspection": "looks at its caller",
}


@dataclass(frozen=True)
class Disguise:
    """Static facts that a reader should look at. They never decide."""

    name: str = "disguise"

    def inspect(self, evidence: Evidence) -> Observation:
        """Note each kind of sighting once, with its places."""
        findings = []
        for field, code in KINDS.items():
            places = [
                f"{item.name} ({item.path}:{item.line})"
                for item in getattr(evidence.features, field)
            ]
            if places:
                findings.append(
                    Finding(
                        check=self.name,
                        code=code,
                        summary=f"{code}: {', '.join(places[:3])}"[:300],
                        evidence={"places": list(places[:10])},
                    )
                )
        return Observation(findings=tuple(findings))


CHECK = Disguise()
