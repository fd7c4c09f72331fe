"""Source that hides what it does: assembled names, encoded text, patched libraries."""

from __future__ import annotations

from tilewright.checks.evidence import Evidence, Observation
from tilewright.records import Finding
from tilewright.records.codes import FindingCode

KINDS = {
    "assembled_names": (FindingCode.ASSEMBLED_NAMES, "assembled names"),
    "decoding": (FindingCode.ENCODED_TEXT, "encoded text"),
    "patches": (FindingCode.PATCHED_LIBRARY, "patches a library"),
    "proc_access": (FindingCode.PROC_ACCESS, "reads /proc"),
    "token_pasting": (FindingCode.TOKEN_PASTING, "pastes tokens"),
    "outside_includes": (FindingCode.OUTSIDE_INCLUDE, "includes foreign files"),
    "introspection": (FindingCode.INTROSPECTION, "inspects its caller"),
}
"""Field of `StaticFeatures`: the code of its finding, and the words of its summary."""


class Obfuscation:
    """Static facts that a reader should look at. They never decide."""

    name = "obfuscation"

    def inspect(self, evidence: Evidence) -> Observation:
        """Note each kind of sighting once, with its places."""
        findings = []
        for field, (code, text) in KINDS.items():
            places = [
                f"{item.name} ({item.path}:{item.line})"
                for item in getattr(evidence.features, field)
            ]
            if places:
                findings.append(
                    Finding(
                        check=self.name,
                        code=code,
                        summary=f"{text}: {', '.join(places[:3])}"[:300],
                        evidence={"places": list(places[:10])},
                    )
                )
        return Observation(findings=tuple(findings))


CHECK = Obfuscation()
