"""Own kernels that do no needed work: never launched, or not missed when knocked out."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.checks.evidence import Evidence, Observation
from tilewright.records import Finding

__all__ = ["CHECK"]

_KERNEL_LANGUAGES = ("triton", "cpp", "cuda")


@dataclass(frozen=True)
class Decoys:
    """A candidate in a kernel language must do its work in its own kernels."""

    name: str = "decoys"

    def inspect(self, evidence: Evidence) -> Observation:
        """Reject what launches nothing, or is right without its launches."""
        if evidence.language not in _KERNEL_LANGUAGES and not evidence.rules.require_custom_kernel:
            return Observation()
        launches = evidence.timed_launches or evidence.launches
        if launches and max(launches) == 0:
            return _found(
                "no kernel of the candidate's own was launched",
                {"calls": len(launches), "launches": 0},
            )
        if evidence.right_when_suppressed:
            return _found(
                "the output is right although every launch of its own kernels was suppressed",
                {"right_when_suppressed": True},
            )
        return Observation()


def _found(summary: str, values: dict[str, bool | int]) -> Observation:
    finding = Finding(
        check="decoys",
        code="unused_kernel",
        summary=summary,
        weight="decisive",
        evidence=dict(values),
    )
    return Observation(findings=(finding,))


CHECK = Decoys()
