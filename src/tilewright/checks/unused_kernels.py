"""Own kernels that do no needed work: never launched, or not missed under launch suppression."""

from __future__ import annotations

from tilewright.checks.evidence import Evidence, Observation
from tilewright.records import Finding
from tilewright.records.codes import FindingCode

_KERNEL_LANGUAGES = ("triton", "cpp", "cuda")


class UnusedKernels:
    """A candidate in a kernel language must do its work in its own kernels."""

    name = "unused_kernels"

    def inspect(self, evidence: Evidence) -> Observation:
        """Reject a candidate that launches nothing, or is right without its launches."""
        if evidence.language not in _KERNEL_LANGUAGES and not evidence.rules.require_custom_kernel:
            return Observation()
        launches = evidence.timed_launches or evidence.launches
        values: dict[str, bool | int]
        if launches and max(launches) == 0:
            summary = "no kernel of the candidate's own was launched"
            values = {"calls": len(launches), "launches": 0}
        elif evidence.right_when_suppressed:
            summary = "the output is right although every launch of its own kernels was suppressed"
            values = {"right_when_suppressed": True}
        else:
            return Observation()
        finding = Finding(
            check=self.name,
            code=FindingCode.UNUSED_KERNEL,
            summary=summary,
            weight="decisive",
            evidence=dict(values),
        )
        return Observation(findings=(finding,))


CHECK = UnusedKernels()
