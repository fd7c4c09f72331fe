"""The report of an evaluation."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Literal

from pydantic import Field, JsonValue, NonNegativeInt

from tilewright.records.base import SCHEMA_VERSION, Record
from tilewright.records.codes import IsolationLayer
from tilewright.records.outcome import Correct, Finding, Label, Outcome, Verdict
from tilewright.records.request import EvalRequest


class Timing(Record):
    """The time of one call of the candidate or a baseline, with its 95 % interval."""

    median_us: float = Field(gt=0)
    low_us: float = Field(gt=0)
    high_us: float = Field(gt=0)
    samples: int = Field(gt=0)
    method: Literal["host_clock", "cuda_events_trusted", "cuda_events_candidate"]
    call_latency_us: float | None = Field(default=None, gt=0)
    """On a GPU: latency of a call for a Python caller, by the supervisor's clock."""
    back_to_back_us: float | None = Field(default=None, gt=0)
    """On a GPU: time of one of many calls that are launched together, with warm caches. It is not
    part of any ratio."""
    peak_bytes: int | None = Field(default=None, ge=0)
    """On a GPU: peak memory of a call, self-reported by the runner."""


class Comparison(Record):
    """Candidate against one baseline on one case: a paired ratio with its interval."""

    case: str
    baseline: str
    candidate: Timing
    baseline_timing: Timing
    baseline_us: float | None = Field(default=None, gt=0)
    """Time of a call of the baseline to show next to the speed-up: `baseline_us / candidate_us` is
    `speedup`, and their geometric mean is that of both medians. `None`: an older report."""
    candidate_us: float | None = Field(default=None, gt=0)
    """The same for the candidate."""
    speedup: float = Field(gt=0)
    speedup_low: float | None = Field(gt=0)
    speedup_high: float | None = Field(gt=0)
    """95 % interval; `None` under `official`, whose published rules have none."""
    blocks: int = Field(ge=1)
    moved_bytes: int = Field(default=0, ge=0)
    """Bytes of the inputs and outputs of one call."""
    input_shapes: tuple[tuple[NonNegativeInt, ...], ...] = ()
    """Shapes of the tensors among the arguments of one call, in order, also of those in lists.
    Empty: an older report, or no argument is a tensor."""
    conclusion: Literal["faster", "slower", "no measurable difference", "no interval"]
    blocks_per_process: tuple[int, ...] = ()
    """Blocks of each process replicate, in order."""
    labels: tuple[str, ...] = ()
    """For example `short_call`, `wide_interval`, `uncalibrated`."""
    raw_us: tuple[tuple[float, ...], ...] = ()
    """One row for each block: reference, candidate, candidate, reference (ABBA)."""
    self_reported_us: tuple[tuple[float, ...], ...] = ()
    """On a GPU: the same calls by the runners' own events. No verdict depends on them."""


class Ceilings(Record):
    """Measured ceilings of a device, for the roofline. They are measured once and stored."""

    memory_bandwidth_bytes_per_s: float = Field(gt=0)
    """The larger bandwidth of copying and reading a gigabyte, on a CPU 128 MiB."""
    flops_per_s: dict[str, float]
    """Products of large matrices, by precision: `fp32`, `tf32`, `fp16`, `bf16`."""


class Work(Record):
    """The work of a case, as its problem declares it or as counted on its reference."""

    case: str
    precision: Literal["fp32", "tf32", "fp16", "bf16"]
    """Precision whose ceiling limits its matrix products."""
    moved_bytes: int = Field(ge=0)
    """The problem's `BYTES`; by default the bytes of inputs, weights and outputs, each once."""
    output_bytes: int = Field(ge=0)
    flops: int | None = Field(default=None, ge=0)
    """The problem's `FLOPS`; by default those of matrix products, convolutions and attention.
    `None` if they cannot be counted."""
    peak_bytes: int | None = Field(default=None, ge=0)
    """Peak device memory of the reference; `None` on a CPU."""


class KernelShape(Record):
    """How a kernel was compiled and launched in one call on a GPU, self-reported."""

    name: str
    blocks: int = Field(ge=1)
    threads: int = Field(ge=1)
    """Threads of a block."""
    registers: int | None = Field(default=None, ge=0)
    """Registers of a thread."""
    shared_bytes: int | None = Field(default=None, ge=0)
    """Shared memory of a block."""
    spilled_bytes: int | None = Field(default=None, ge=0)
    """Local memory of a thread, where registers are spilled to; `None`: unknown."""
    tensor_cores: bool | None = None
    """Whether its instructions include products on tensor cores; `None`: unknown."""


class Profile(Record):
    """The share of a candidate's device time in its own kernels, on one case."""

    case: str
    launches: int = Field(ge=0)
    self_reported_share: float = Field(ge=0, le=1)
    """Share of the call between events around its own launches, self-reported."""
    suppressed_share: float | None = Field(default=None, ge=0, le=1)
    """Share of the call that launch suppression saves, measured by the judge."""
    coverage: float = Field(ge=0, le=1)
    """The smaller of the two shares; the second one if no launch was counted."""
    shapes: tuple[KernelShape, ...] = ()
    """Its own Triton kernels, each once for each launch shape."""


class KernelTime(Record):
    """Kernels of one name in one call on a GPU, from torch's profiler in the runner."""

    name: str
    launches: int = Field(ge=1)
    total_us: float = Field(ge=0)
    library: bool
    """Whether the name is that of a kernel of torch or of an NVIDIA library."""
    shape: KernelShape | None = None
    """The shape of its first launch."""


class OperatorUse(Record):
    """The torch operators of one call of the candidate, as its runner counts them."""

    case: str
    counts: dict[str, NonNegativeInt]
    """Number of calls by name, such as `aten::add`."""


class LoopRemark(Record):
    """A remark of g++ about an innermost loop of a candidate."""

    path: str
    line: int = Field(ge=1)
    vector_bytes: int | None = Field(default=None, ge=1)
    """Size of the largest vectors that compute the loop; `None`: it is not vectorized."""
    reason: str = ""
    """The compiler's reason for a loop that is not vectorized."""


class CaseResult(Record):
    """One comparison of outputs: the case, the input variation, the error and the oracle."""

    case: str
    input_variation: str
    result: Literal["pass", "fail", "skipped"]
    detail: str = ""
    error_over_tolerance: float | None = Field(default=None, ge=0)
    oracle: str = ""
    seed: str = ""
    """Seed by which the reproducer generates the same inputs."""


class StageRecord(Record):
    """One stage of the pipeline, and its wall-clock time."""

    name: str
    wall_s: float = Field(ge=0)
    detail: str = ""


class IsolationStatus(Record):
    """One isolation layer, and whether it was active for this candidate."""

    name: IsolationLayer
    active: bool
    detail: str = ""


class ReportEnvironment(Record):
    """The machine and the versions of an evaluation."""

    device: str
    device_name: str
    host: dict[str, JsonValue]
    versions: dict[str, str]


class EvalReport(Record):
    """The whole report. Its JSON is the document that `--json` prints."""

    schema_version: Literal[2] = SCHEMA_VERSION
    verdict: Verdict
    speedup: float | None = Field(default=None, gt=0)
    """Geometric mean over timed cases against the first baseline; `None` without a baseline."""
    speedup_low: float | None = Field(default=None, gt=0)
    speedup_high: float | None = Field(default=None, gt=0)
    conclusion: Literal["faster", "slower", "no measurable difference"] | None = None
    """Whether the interval of `speedup` lies above 1, below 1, or contains 1; `None` without an
    interval."""
    outcome: Outcome
    findings: tuple[Finding, ...] = ()
    labels: tuple[Label, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    profile: Profile | None = None
    """On a GPU, for candidates with their own kernels."""
    work: tuple[Work, ...] = ()
    """On a GPU for each case, on a CPU for each case that was timed."""
    ceilings: Ceilings | None = None
    """`None` if nothing was timed on this device yet."""
    operators: OperatorUse | None = None
    loops: tuple[LoopRemark, ...] = ()
    """For a C++ candidate: what the compiler did with its loops."""
    kernels: tuple[KernelTime, ...] = ()
    """With `trace`: the kernels of one call, the longest first, self-reported."""
    cases: tuple[CaseResult, ...] = ()
    stages: tuple[StageRecord, ...] = ()
    isolation: tuple[IsolationStatus, ...] = ()
    environment: ReportEnvironment
    seed: str
    """The root seed, revealed after the verdict. It generates the same inputs again."""
    candidate_output: str = ""
    """Printed text of the candidate, cut to the limit. It is untrusted."""
    request: EvalRequest
    evaluator: str
    """Version of tilewright."""

    def model_post_init(self, _context: object) -> None:
        """Refuse a report whose summary contradicts its outcome."""
        if self.verdict != self.outcome.verdict:
            raise ValueError(f"verdict {self.verdict} but outcome {self.outcome.verdict}")
        if self.speedup is not None and not isinstance(self.outcome, Correct):
            raise ValueError("a speed-up is only reported for a correct candidate")
        if self.conclusion is None and self.speedup_low is not None:
            # No caller can forget it, and older reports have it too.
            object.__setattr__(self, "conclusion", _concluded(self))

    def __str__(self) -> str:
        """Return the text that `tilewright eval` prints."""
        return str(_display("summary")(self))

    def __repr__(self) -> str:
        """Return the verdict with the speed-up or the reason, in one line."""
        return str(_display("line")(self))

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return str(_display("page")(self))

    def explain(self) -> str:
        """Return the text of `tilewright explain`."""
        return str(_display("explanation")(self))


def _concluded(report: EvalReport) -> str | None:
    # By name, as below.
    intervals = importlib.import_module("tilewright.scoring.intervals")
    ends = report.speedup, report.speedup_low, report.speedup_high
    return None if None in ends else str(intervals.decide(intervals.Interval(*ends)))


def _display(name: str) -> Callable[[EvalReport], Any]:
    # By name: records import nothing above them, and the texts belong to the command line.
    shown = importlib.import_module("tilewright.cli.report_display")
    function: Callable[[EvalReport], Any] = getattr(shown, name)
    return function
