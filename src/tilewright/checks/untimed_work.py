"""Work outside the timed calls, and work that slows the baseline down."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.checks.evidence import Evidence, Observation
from tilewright.records import Finding

__all__ = ["CHECK"]

OUTSIDE_FLOOR_S = 0.0005
OUTSIDE_SHARE = 0.25
DISTURBED_SHARE = 0.1


@dataclass(frozen=True)
class OutsideWork:
    """The CPU time of a candidate's whole process tree belongs into its timed calls."""

    name: str = "outside_work"

    def inspect(self, evidence: Evidence) -> Observation:
        """Reject CPU time used between the calls, or in the baseline's turn."""
        findings = []
        if evidence.disturbed > DISTURBED_SHARE:
            findings.append(
                Finding(
                    check=self.name,
                    code="baseline_interference",
                    summary=f"it took {evidence.disturbed:.0%} of the baseline's turn for itself",
                    weight="decisive",
                    evidence={"share": round(evidence.disturbed, 4)},
                )
            )
        if evidence.untimed_cpu_s > max(OUTSIDE_FLOOR_S, OUTSIDE_SHARE * evidence.call_s):
            findings.append(
                Finding(
                    check=self.name,
                    code="untimed_work",
                    summary=f"it used {evidence.untimed_cpu_s * 1e3:.2f} ms of CPU between calls "
                    f"of {evidence.call_s * 1e3:.2f} ms",
                    weight="decisive",
                    evidence={"untimed_cpu_s": evidence.untimed_cpu_s, "call_s": evidence.call_s},
                )
            )
        return Observation(findings=tuple(findings))


CHECK = OutsideWork()
