"""The value that each tool gets for each verdict, as data. Each integration reads its column."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, assert_never

from tilewright.records import Correct, EvalReport, Failed, Incorrect, Rejected, Unjudged
from tilewright.records.codes import FailureReason
from tilewright.records.events import EvalSummary
from tilewright.scoring.benchmarks.compiled import BEFORE_FIRST_CALL, fails_like_a_call


class Ours(StrEnum):
    """A verdict, as finely as some tool distinguishes verdicts."""

    CORRECT_TIMED = "correct, timed"
    CORRECT_NOT_TIMED = "correct, not timed"
    INCORRECT = "incorrect"
    FAILED_BUILD = "failed before its first call"
    FAILED_CONSTRUCTOR = "`RuntimeError` in its constructor"
    FAILED_RUN = "failed in a call"
    FAILED_TIME = "failed: timeout in a call"
    REJECTED = "rejected"
    UNJUDGED = "unjudged"


@dataclass(frozen=True)
class KernelBenchCell:
    """The fields of KernelBench's result."""

    compiled: bool
    correctness: bool
    timed: bool = False
    """Whether `runtime` and `ref_runtime` hold times; otherwise they are -1."""
    metadata: str = ""
    """The key of `metadata` that holds the reason; `KEY_name` holds its code."""
    raises: bool = False
    """Whether there is no result, and `NoVerdict` is raised instead."""

    def __str__(self) -> str:
        """Return the cell of the published table."""
        if self.raises:
            return "raises `NoVerdict`"
        words = [
            "compiled" if self.compiled else "not compiled",
            *(["correctness" if self.correctness else "not correctness"] if self.compiled else []),
            *(["runtimes"] if self.timed else ["runtime -1"] if self.correctness else []),
            *([f"`{self.metadata}`"] if self.metadata else []),
        ]
        return ", ".join(words)


@dataclass(frozen=True)
class PytestCell:
    """How a test ends before its function is called."""

    ends: Literal["as required", "fails", "skipped"]

    def __str__(self) -> str:
        """Return the cell of the published table."""
        return {
            "as required": "runs if `require` is met, else fails",
            "fails": "fails unless `require` is `None`",
            "skipped": "skipped with the reason; fails with `--kernels-must-judge`",
        }[self.ends]


@dataclass(frozen=True)
class GpuModeCell:
    """The result of GPU MODE's bot."""

    passes: bool
    shows: Literal["durations", "expected value", "error", "finding", "nothing"] = "nothing"
    exit_code: int | None = 0
    """The exit code that its harness returns; `None`: there is no result."""

    def __str__(self) -> str:
        """Return the cell of the published table."""
        if self.exit_code is None:
            return "no result"
        words = ["pass" if self.passes else "fail"]
        if self.shows != "nothing":
            words.append(f"with the {self.shows}")
        return f"{' '.join(words)}, its exit code {self.exit_code}"


GPU_MODE: dict[Ours, GpuModeCell] = {
    Ours.CORRECT_TIMED: GpuModeCell(True, "durations"),
    Ours.CORRECT_NOT_TIMED: GpuModeCell(True),
    Ours.INCORRECT: GpuModeCell(False, "expected value", 112),
    Ours.FAILED_BUILD: GpuModeCell(False, "error", 1),
    Ours.FAILED_CONSTRUCTOR: GpuModeCell(False, "error", 1),
    Ours.FAILED_RUN: GpuModeCell(False, "error", 1),
    Ours.FAILED_TIME: GpuModeCell(False, "error", 114),
    Ours.REJECTED: GpuModeCell(False, "finding", 112),
    Ours.UNJUDGED: GpuModeCell(False, exit_code=None),
}


@dataclass(frozen=True)
class FlashInferCell:
    """The status of a trace of FlashInfer."""

    status: str | None
    """`INCORRECT`: with `_SHAPE`, `_DTYPE` or `_NUMERICAL`; `None`: there is no trace."""
    note: str = ""

    def __str__(self) -> str:
        """Return the cell of the published table."""
        text = "no trace" if self.status is None else self.status
        return f"{text}, {self.note}" if self.note else text


FLASHINFER: dict[Ours, FlashInferCell] = {
    Ours.CORRECT_TIMED: FlashInferCell("PASSED"),
    Ours.CORRECT_NOT_TIMED: FlashInferCell(None, "because it requires a time"),
    Ours.INCORRECT: FlashInferCell("INCORRECT", "with `_SHAPE`, `_DTYPE` or `_NUMERICAL`"),
    Ours.FAILED_BUILD: FlashInferCell("COMPILE_ERROR"),
    Ours.FAILED_CONSTRUCTOR: FlashInferCell("RUNTIME_ERROR"),
    Ours.FAILED_RUN: FlashInferCell("RUNTIME_ERROR"),
    Ours.FAILED_TIME: FlashInferCell("TIMEOUT"),
    Ours.REJECTED: FlashInferCell("RUNTIME_ERROR", "with the finding in `log`"),
    Ours.UNJUDGED: FlashInferCell(None, "a line in the summary"),
}


@dataclass(frozen=True)
class VerdictRow:
    """The value that each tool gets for one verdict."""

    kernelbench: KernelBenchCell
    pytest: PytestCell


TABLE: dict[Ours, VerdictRow] = {
    Ours.CORRECT_TIMED: VerdictRow(
        KernelBenchCell(True, True, timed=True), PytestCell("as required")
    ),
    Ours.CORRECT_NOT_TIMED: VerdictRow(KernelBenchCell(True, True), PytestCell("as required")),
    Ours.INCORRECT: VerdictRow(
        KernelBenchCell(True, False, metadata="correctness_issue"), PytestCell("fails")
    ),
    Ours.FAILED_BUILD: VerdictRow(
        KernelBenchCell(False, False, metadata="compilation_error"), PytestCell("fails")
    ),
    Ours.FAILED_CONSTRUCTOR: VerdictRow(
        KernelBenchCell(True, False, metadata="runtime_error"), PytestCell("fails")
    ),
    Ours.FAILED_RUN: VerdictRow(
        KernelBenchCell(True, False, metadata="runtime_error"), PytestCell("fails")
    ),
    Ours.FAILED_TIME: VerdictRow(
        KernelBenchCell(True, False, metadata="runtime_error"), PytestCell("fails")
    ),
    Ours.REJECTED: VerdictRow(
        KernelBenchCell(True, False, metadata="correctness_issue"), PytestCell("fails")
    ),
    Ours.UNJUDGED: VerdictRow(KernelBenchCell(False, False, raises=True), PytestCell("skipped")),
}


def row_of(report: EvalReport) -> Ours:
    """Return the row of a report."""
    match report.outcome:
        case Correct():
            return Ours.CORRECT_NOT_TIMED if report.speedup is None else Ours.CORRECT_TIMED
        case Incorrect():
            return Ours.INCORRECT
        case Failed() as failed if fails_like_a_call(failed.stage, failed.exception):
            return Ours.FAILED_CONSTRUCTOR
        case Failed(stage=stage) if stage in BEFORE_FIRST_CALL:
            return Ours.FAILED_BUILD
        case Failed(reason=FailureReason.TIMEOUT):
            return Ours.FAILED_TIME
        case Failed():
            return Ours.FAILED_RUN
        case Rejected():
            return Ours.REJECTED
        case Unjudged():
            return Ours.UNJUDGED
        case _:
            assert_never(report.outcome)


def row_of_summary(summary: EvalSummary) -> Ours:
    """Return the row of an event log's summary; that of its report is the same."""
    match summary.verdict:
        case "correct":
            return Ours.CORRECT_NOT_TIMED if summary.speedup is None else Ours.CORRECT_TIMED
        case "incorrect":
            return Ours.INCORRECT
        case "failed" if fails_like_a_call(summary.stage, summary.exception):
            return Ours.FAILED_CONSTRUCTOR
        case "failed" if summary.stage in BEFORE_FIRST_CALL:
            return Ours.FAILED_BUILD
        case "failed" if summary.code == FailureReason.TIMEOUT:
            return Ours.FAILED_TIME
        case "failed":
            return Ours.FAILED_RUN
        case "rejected":
            return Ours.REJECTED
        case "unjudged":
            return Ours.UNJUDGED
        case _:
            assert_never(summary.verdict)


@dataclass(frozen=True)
class HarnessCell:
    """The reward of verifiers and of OpenEnv."""

    reward: Literal["by rule", "without speed", "zero", "none"]

    def __str__(self) -> str:
        """Return the cell of the published table."""
        return {
            "by rule": "reward by the chosen rule",
            "without speed": "reward without its term of speed",
            "zero": "0",
            "none": "no reward: a rollout error in verifiers, `None` in OpenEnv",
        }[self.reward]


HARNESSES: dict[Ours, HarnessCell] = {
    Ours.CORRECT_TIMED: HarnessCell("by rule"),
    Ours.CORRECT_NOT_TIMED: HarnessCell("without speed"),
    Ours.INCORRECT: HarnessCell("zero"),
    Ours.FAILED_BUILD: HarnessCell("zero"),
    Ours.FAILED_CONSTRUCTOR: HarnessCell("zero"),
    Ours.FAILED_RUN: HarnessCell("zero"),
    Ours.FAILED_TIME: HarnessCell("zero"),
    Ours.REJECTED: HarnessCell("zero"),
    Ours.UNJUDGED: HarnessCell("none"),
}
"""The column of verifiers and OpenEnv."""


@dataclass(frozen=True)
class InspectCell:
    """The scores of Inspect; `None`: unscored."""

    correct: int | None
    fast_p: Literal["by speed-up", "zero"] | None

    def __str__(self) -> str:
        """Return the cell of the published table."""
        if self.correct is None:
            return "unscored"
        fast = {"by speed-up": "by speed-up", "zero": "0", None: "unscored"}[self.fast_p]
        return f"`correct` {self.correct}, `fast_p` {fast}"


INSPECT: dict[Ours, InspectCell] = {
    Ours.CORRECT_TIMED: InspectCell(1, "by speed-up"),
    Ours.CORRECT_NOT_TIMED: InspectCell(1, None),
    Ours.INCORRECT: InspectCell(0, "zero"),
    Ours.FAILED_BUILD: InspectCell(0, "zero"),
    Ours.FAILED_CONSTRUCTOR: InspectCell(0, "zero"),
    Ours.FAILED_RUN: InspectCell(0, "zero"),
    Ours.FAILED_TIME: InspectCell(0, "zero"),
    Ours.REJECTED: InspectCell(0, "zero"),
    Ours.UNJUDGED: InspectCell(None, None),
}
"""The column of Inspect."""


@dataclass(frozen=True)
class KernelGymCell:
    """The fields of KernelGYM's answer under strict rules. A missing number is 0 there."""

    status: Literal["completed", "failed"]
    compiled: bool
    correctness: bool
    code: str | None
    timed: bool = False
    unused: bool = False
    """Whether the field `decoy_kernel` is set."""

    def __str__(self) -> str:
        """Return the cell of the published table."""
        words = [
            self.status,
            "compiled" if self.compiled else "not compiled",
            *(["correctness"] if self.correctness else []),
            *(["`decoy_kernel`"] if self.unused else []),
            *(["runtimes and speed-up"] if self.timed else []),
            *([f"`{self.code}`"] if self.code else []),
        ]
        return ", ".join(words)


KERNELGYM: dict[Ours, KernelGymCell] = {
    Ours.CORRECT_TIMED: KernelGymCell("completed", True, True, None, timed=True),
    Ours.CORRECT_NOT_TIMED: KernelGymCell("completed", True, True, None),
    Ours.INCORRECT: KernelGymCell("completed", True, False, "CORRECTNESS_ERROR"),
    Ours.FAILED_BUILD: KernelGymCell("failed", False, False, "COMPILATION_ERROR"),
    Ours.FAILED_CONSTRUCTOR: KernelGymCell("completed", True, False, "RUNTIME_ERROR"),
    Ours.FAILED_RUN: KernelGymCell("completed", True, False, "RUNTIME_ERROR"),
    Ours.FAILED_TIME: KernelGymCell("failed", True, False, "TIMEOUT_ERROR"),
    Ours.REJECTED: KernelGymCell("completed", True, False, None, unused=True),
    Ours.UNJUDGED: KernelGymCell("failed", False, False, "UNJUDGED"),
}
"""The column of the server's endpoints for KernelGYM's clients."""
