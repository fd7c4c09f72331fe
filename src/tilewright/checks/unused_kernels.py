"""Own kernels that do no needed work: the output is right under launch suppression."""

from __future__ import annotations

from tilewright.checks.evidence import Evidence, Observation
from tilewright.records import Finding
from tilewright.records.codes import FindingCode

_KERNEL_LANGUAGES = ("triton", "cpp", "cuda")


class UnusedKernels:
    """A candidate in a kernel language must do its work in its own kernels."""

    name = "unused_kernels"

    def inspect(self, evidence: Evidence) -> Observation:
        """Reject a candidate that is right without its launches.

        A count of zero alone decides nothing: the counter may miss a way to launch.
        """
        if evidence.language not in _KERNEL_LANGUAGES and not evidence.rules.require_custom_kernel:
            return Observation()
        if not evidence.right_when_suppressed:
            return Observation()
        launches = evidence.timed_launches or evidence.launches
        values: dict[str, bool | int] = {"right_when_suppressed": True}
        summary = "the output is right although every launch of its own kernels was suppressed"
        if launches and max(launches) == 0:
            summary = "no kernel of the candidate's own was launched"
            values |= {"calls": len(launches), "launches": 0}
        finding = Finding(
            check=self.name,
            code=FindingCode.UNUSED_KERNEL,
            summary=summary,
            weight="decisive",
            evidence=dict(values),
        )
        return Observation(findings=(finding,))


CHECK = UnusedKernels()
