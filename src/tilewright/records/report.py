"""What the evaluator answers."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tilewright.records.base import SCHEMA_VERSION, JsonValue, Record
from tilewright.records.outcome import Correct, Finding, Label, Outcome, Verdict
from tilewright.records.request import EvalRequest

__all__ = [
    "CaseResult",
    "Ceilings",
    "Comparison",
    "Environment",
    "EvalReport",
    "KernelTime",
    "Profile",
    "Protection",
    "StageRecord",
    "Timing",
    "Work",
]


class Timing(Record):
    """The time of one call of one side, in microseconds, with its 95 % interval."""

    median_us: float = Field(gt=0)
    low_us: float = Field(gt=0)
    high_us: float = Field(gt=0)
    samples: int = Field(gt=0)
    method: Literal["host_clock", "cuda_events_trusted", "cuda_events_candidate"]
    call_latency_us: float | None = Field(default=None, gt=0)
    """On a GPU: what a Python caller waits for it, by the supervisor's clock."""
    back_to_back_us: float | None = Field(default=None, gt=0)
    """On a GPU: one of many calls behind one gate, with warm caches; in no ratio."""
    peak_bytes: int | None = Field(default=None, ge=0)
    """On a GPU: memory that a call allocates at its peak, by the side's own word."""


class Comparison(Record):
    """Candidate against one baseline on one case: a paired ratio with its interval."""

    case: str
    baseline: str
    candidate: Timing
    baseline_timing: Timing
    speedup: float = Field(gt=0)
    speedup_low: float | None = Field(gt=0)
    speedup_high: float | None = Field(gt=0)
    """95 % interval; `None` under `official`, whose published rules have none."""
    blocks: int = Field(ge=1)
    moved_bytes: int = Field(default=0, ge=0)
    """Bytes of the inputs and outputs of one call."""
    conclusion: Literal["faster", "slower", "no measurable difference", "no interval"]
    blocks_per_process: tuple[int, ...] = ()
    """Blocks that each pair of processes made, in order; together all of them."""
    labels: tuple[str, ...] = ()
    """For example `short`, `noisy`, `uncalibrated`."""
    raw_us: tuple[tuple[float, ...], ...] = ()
    """One row a block: reference, candidate, candidate, reference (ABBA), microseconds."""
    self_reported_us: tuple[tuple[float, ...], ...] = ()
    """The same calls on a device by the sides' own events: testimony, shown and never used."""


class Ceilings(Record):
    """What this device was seen to do at most: measured on it in a second, then kept."""

    memory_bandwidth_bytes_per_s: float = Field(gt=0)
    """The better of copying and reading a gigabyte."""
    flops_per_s: dict[str, float]
    """Products of large matrices, by precision: `fp32`, `tf32`, `fp16`, `bf16`."""


class Work(Record):
    """What a case asks for, as its problem says or as counted on its reference."""

    case: str
    precision: Literal["fp32", "tf32", "fp16", "bf16"]
    """Whose ceiling its products are held against."""
    moved_bytes: int = Field(ge=0)
    """What the problem's `BYTES` says, else inputs, weights and outputs, each once."""
    output_bytes: int = Field(ge=0)
    flops: int | None = Field(default=None, ge=0)
    """What the problem's `FLOPS` says, else of matrix products, convolutions and attention; `None`
    where they cannot be counted."""
    peak_bytes: int = Field(ge=0)
    """Memory that the reference allocates at its peak."""


class Profile(Record):
    """How much of a candidate's device time its own kernels are, on one case."""

    case: str
    launches: int = Field(ge=0)
    self_reported_share: float = Field(ge=0, le=1)
    """Share of the call between events around its own launches: its own word."""
    suppressed_share: float | None = Field(default=None, ge=0, le=1)
    """Share of the call that is saved when its own launches are left out: the judge's figure."""
    coverage: float = Field(ge=0, le=1)
    """The smaller of the two."""


class KernelTime(Record):
    """Kernels of one name in one call on a GPU, as torch's profiler in its process saw them."""

    name: str
    launches: int = Field(ge=1)
    total_us: float = Field(ge=0)
    library: bool
    """Whether its name is one of torch's or of a library of NVIDIA's."""


class CaseResult(Record):
    """One comparison of outputs: which case and contents, how far off, against which oracle."""

    case: str
    input_variation: str
    result: Literal["pass", "fail", "skipped"]
    detail: str = ""
    error_over_tolerance: float | None = Field(default=None, ge=0)
    oracle: str = ""
    seed: str = ""
    """What the reproducer needs to draw the same inputs."""


class StageRecord(Record):
    """One stage that ran, and how long it took."""

    name: str
    wall_s: float = Field(ge=0)
    detail: str = ""


class Protection(Record):
    """One layer of the wall, and whether it was active for this candidate."""

    name: str
    active: bool
    detail: str = ""


class Environment(Record):
    """Where it was judged."""

    device: str
    device_name: str
    host: dict[str, JsonValue]
    versions: dict[str, str]


class EvalReport(Record):
    """The whole answer. Its JSON is the document that `--json` prints."""

    schema_version: Literal[2] = SCHEMA_VERSION
    verdict: Verdict
    speedup: float | None = Field(default=None, gt=0)
    """Geometric mean over timed cases against the first baseline; `None` without one."""
    speedup_low: float | None = Field(default=None, gt=0)
    speedup_high: float | None = Field(default=None, gt=0)
    outcome: Outcome
    findings: tuple[Finding, ...] = ()
    labels: tuple[Label, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    profile: Profile | None = None
    """On a GPU, for candidates with kernels of their own."""
    work: tuple[Work, ...] = ()
    """On a GPU, for each case."""
    ceilings: Ceilings | None = None
    """On a GPU."""
    kernels: tuple[KernelTime, ...] = ()
    """Where a trace was asked for, the longest first: testimony."""
    cases: tuple[CaseResult, ...] = ()
    stages: tuple[StageRecord, ...] = ()
    isolation: tuple[Protection, ...] = ()
    environment: Environment
    seed: str
    """The root seed, revealed after the verdict: with it the same inputs are drawn again."""
    candidate_output: str = ""
    """What the candidate printed, cut to the limit. Shown, never trusted."""
    request: EvalRequest
    evaluator: str
    """Version of tilewright that judged."""

    def model_post_init(self, _context: object) -> None:
        """Refuse a report whose summary contradicts its outcome."""
        if self.verdict != self.outcome.verdict:
            raise ValueError(f"verdict {self.verdict} but outcome {self.outcome.verdict}")
        if self.speedup is not None and not isinstance(self.outcome, Correct):
            raise ValueError("a speed-up is only reported for a correct candidate")
