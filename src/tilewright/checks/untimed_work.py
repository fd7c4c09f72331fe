"""Work outside the timed calls, and work that slows the baseline down."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.checks.evidence import Evidence, Observation
from tilewright.records import Finding
from tilewright.records.codes import FindingCode

MAX_UNTIMED_CPU_S = 0.0005
"""CPU seconds between two calls that no candidate is rejected for, however short its calls."""
MAX_UNTIMED_CPU_SHARE = 0.25
"""Ratio to the time of a call: CPU time between two calls that no candidate is rejected for."""
MAX_INTERFERENCE_SHARE = 0.1
"""Share of a baseline's call that no candidate is rejected for taking."""


class UntimedWork:
    """A candidate's processes may use CPU time within its timed calls alone."""

    name = "untimed_work"

    def inspect(self, evidence: Evidence) -> Observation:
        """Reject CPU time used between the calls, or during the baseline's calls."""
        findings = [
            Finding(check=self.name, code=code, summary=summary, weight="decisive", evidence=values)
            for code, summary, values in _excesses(evidence)
        ]
        return Observation(findings=tuple(findings))


def _excesses(evidence: Evidence) -> Iterator[tuple[str, str, dict[str, float]]]:
    if evidence.disturbed > MAX_INTERFERENCE_SHARE:
        summary = f"it took {evidence.disturbed:.0%} of the baseline's turn for itself"
        yield FindingCode.BASELINE_INTERFERENCE, summary, {"share": round(evidence.disturbed, 4)}
    untimed_s, call_s = evidence.untimed_cpu_s, evidence.call_s
    if untimed_s > max(MAX_UNTIMED_CPU_S, MAX_UNTIMED_CPU_SHARE * call_s):
        summary = f"it used {untimed_s * 1e3:.2f} ms of CPU between calls of {call_s * 1e3:.2f} ms"
        yield FindingCode.UNTIMED_WORK, summary, {"untimed_cpu_s": untimed_s, "call_s": call_s}


CHECK = UntimedWork()
