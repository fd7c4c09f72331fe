"""A report in the view of KernelGYM's rules. The evaluation itself always has the full sandbox.

KernelGYM (arXiv 2602.05885, its released server) requires five trials within an absolute and
relative tolerance of 1e-2, as `official` does. It has one check more, for Triton alone: some kernel
of the candidate was launched. Speed is the ratio of two means, each rounded to three significant
digits. This view leaves out attacks that need the judge's own process. It also leaves out the
original's second check, which compares names in a profile with names of launches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tilewright.errors import ConfigError
from tilewright.records import Correct, EvalReport, Failed, Incorrect, Rejected
from tilewright.records.base import Record
from tilewright.records.codes import FailureReason, FindingCode, Stage
from tilewright.scoring.benchmarks.compiled import BEFORE_FIRST_CALL, fails_like_a_call
from tilewright.scoring.paired_times import geometric_mean_times

Code = Literal[
    "COMPILATION_ERROR", "RUNTIME_ERROR", "CORRECTNESS_ERROR", "TIMEOUT_ERROR", "UNJUDGED"
]
AFTER_CORRECTNESS = (Stage.LAUNCH_SUPPRESSION, Stage.TIMING, Stage.SHUTDOWN)
"""Stages that follow a positive result of the correctness stage."""


class KernelGym(Record):
    """A result by KernelGYM's rules; its server's format has names of its own."""

    status: Literal["completed", "failed"] = "completed"
    compiled: bool = True
    correctness: bool = False
    unused_kernel: bool = False
    """`decoy_kernel` of KernelGYM: no kernel of the candidate was launched."""
    reference_ms: float | None = None
    kernel_ms: float | None = None
    """Mean milliseconds of a call, summed over cases; `None`: not timed."""
    speedup: float | None = None
    code: Code | None = None


@dataclass(frozen=True)
class Runtimes:
    """KernelGYM's three figures of one candidate: `speedup` is the quotient of both times."""

    reference_ms: float
    kernel_ms: float

    @property
    def speedup(self) -> float:
        """Return the time of the reference divided by that of the candidate."""
        return self.reference_ms / self.kernel_ms


def runtimes(report: EvalReport) -> Runtimes | None:
    """Return the times of a correct candidate over its cases; `None`: it has no speed-up.

    Each is the geometric mean over cases, so that the quotient is the report's speed-up.
    """
    name = report.request.baselines[0].name if report.request.baselines else ""
    chosen = [item for item in report.comparisons if item.baseline == name]
    if report.speedup is None or not chosen:
        return None
    mean = geometric_mean_times(chosen)
    return Runtimes(mean.baseline_us / 1e3, mean.candidate_us / 1e3)


def by_kernelgym(report: EvalReport) -> KernelGym:
    """Return KernelGYM's result over a report of the `official` protocol.

    Its server calls a candidate without a launch correct, and its client counts it as incorrect.

    Raises:
        ConfigError: the report is of another protocol.
    """
    if report.request.protocol != "official":
        raise ConfigError(
            f"KernelGYM's rules need an `official` report, not one of `{report.request.protocol}`"
        )
    match report.outcome:
        case Correct() | Rejected():
            return _right(report)
        case Incorrect():
            return KernelGym(code="CORRECTNESS_ERROR")
        case Failed(reason=FailureReason.TIMEOUT):
            return KernelGym(status="failed", compiled=False, code="TIMEOUT_ERROR")
        case Failed(stage=stage) if stage in AFTER_CORRECTNESS:
            return _right(report)
        case Failed() as failed if not is_compiled(failed):
            return KernelGym(status="failed", compiled=False, code="COMPILATION_ERROR")
        case Failed():
            return KernelGym(code="RUNTIME_ERROR")
        case _:
            return KernelGym(status="failed", compiled=False, code="UNJUDGED")


def is_compiled(failed: Failed) -> bool:
    """Tell whether KernelGYM calls a failed candidate compiled."""
    early = failed.stage in BEFORE_FIRST_CALL
    return not early or fails_like_a_call(failed.stage, failed.exception)


def _right(report: EvalReport) -> KernelGym:
    """Return the result of a candidate whose outputs were within the tolerance."""
    launched_nothing = any(
        item.code == FindingCode.UNUSED_KERNEL and item.evidence.get("launches") == 0
        for item in report.findings
    )
    if report.request.candidate.language == "triton" and launched_nothing:
        return KernelGym(correctness=True, unused_kernel=True)
    name = report.request.baselines[0].name if report.request.baselines else ""
    rows = [item for item in report.comparisons if item.baseline == name and item.raw_us]
    if not rows:
        return KernelGym(correctness=True)
    reference, kernel = (
        sum(_rounded_ms([block[i] for block in item.raw_us for i in calls]) for item in rows)
        for calls in ((0, 3), (1, 2))
    )
    if not (reference > 0 and kernel > 0):
        # A time below half a nanosecond was rounded away.
        return KernelGym(correctness=True)
    speedup = reference / kernel
    return KernelGym(correctness=True, reference_ms=reference, kernel_ms=kernel, speedup=speedup)


def _rounded_ms(times_us: list[float]) -> float:
    return float(f"{sum(times_us) / len(times_us) / 1e3:.3g}")
