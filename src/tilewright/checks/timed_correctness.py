"""Timed calls with an incorrect output: caches, replays, call counters, skipped work."""

from __future__ import annotations

from tilewright.checks.evidence import Evidence, Observation
from tilewright.records import Finding
from tilewright.records.codes import FindingCode


class TimedCorrectness:
    """The judge compares outputs of timed calls like any others."""

    name = "timed_correctness"

    def inspect(self, evidence: Evidence) -> Observation:
        """Note that a timed call was wrong; the verdict is `incorrect` already."""
        if not evidence.timed_wrong:
            return Observation()
        finding = Finding(
            check=self.name,
            code=FindingCode.INCORRECT_WHEN_TIMED,
            summary=f"a timed call was wrong: {evidence.timed_wrong[0]}"[:400],
            evidence={"first": evidence.timed_wrong[0], "count": len(evidence.timed_wrong)},
        )
        return Observation(findings=(finding,))


CHECK = TimedCorrectness()
