"""Work on a device that goes on after the end of a call."""

from __future__ import annotations

from tilewright.checks.evidence import Evidence, Observation
from tilewright.records import Finding
from tilewright.records.codes import FindingCode


class CallEnds:
    """A candidate's work on a device ends with its timed call."""

    name = "call_ends"

    def inspect(self, evidence: Evidence) -> Observation:
        """Reject work behind the end of a call; the evaluator has subtracted what is allowed."""
        seconds = evidence.unfinished_work_s
        if seconds <= 0:
            return Observation()
        summary = (
            "its calls take longer for a caller that waits, or back to back, than by their clock: "
            f"{seconds * 1e6:.0f} us more than is explained"
        )
        values: dict[str, float] = {"unfinished_work_s": seconds, "call_s": evidence.call_s}
        finding = Finding(
            check=self.name,
            code=FindingCode.UNFINISHED_WORK,
            summary=summary,
            weight="decisive",
            evidence=dict(values),
        )
        return Observation(findings=(finding,))


CHECK = CallEnds()
