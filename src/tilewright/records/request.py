"""What is asked of the evaluator."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tilewright.records.base import Record
from tilewright.records.candidate import Baseline, Candidate
from tilewright.records.problem import Problem

__all__ = ["EvalRequest", "Limits", "Protocol", "Rules", "TimingPlan"]

Protocol = Literal["strict", "official"]


class Rules(Record):
    """What a run allows. Recorded in every report."""

    precision: Literal["tf32", "fp32"] = "tf32"
    require_own_kernel: bool = False
    """Reject a candidate that launches no kernel of its own, also in plain torch."""
    deny_labels: tuple[str, ...] = ()
    """Labels that reject a candidate, for example `library call`."""


class TimingPlan(Record):
    """How long and how exactly to time."""

    enabled: bool = True
    min_blocks: int = Field(default=20, ge=4)
    max_blocks: int = Field(default=100, ge=4)
    target_half_width: float = Field(default=0.01, gt=0)
    """Stop once the 95 % interval of the log ratio is this narrow on either side."""
    max_s: float = Field(default=3.0, gt=0)
    """Seconds of timed calls per case and baseline."""
    more_pairs: int = Field(default=2, ge=0, le=8)
    """Pairs of processes beyond the planned one or two on a GPU, while a difference may be luck;
    twice as many where the pairs say that the sides differ."""


class Limits(Record):
    """What one candidate may use."""

    memory_bytes: int = Field(default=4 << 30, gt=0)
    tmp_bytes: int = Field(default=512 << 20, gt=0)
    processes: int = Field(default=64, gt=0)
    build_s: float = Field(default=180.0, gt=0)
    load_s: float = Field(default=30.0, gt=0)
    call_s: float = Field(default=20.0, gt=0)
    exit_s: float = Field(default=3.0, gt=0)
    total_s: float = Field(default=300.0, gt=0)
    output_bytes: int = Field(default=65536, gt=0)
    """How much of the candidate's own printing is kept."""


class EvalRequest(Record):
    """One candidate, one problem, and how to judge it."""

    problem: Problem
    candidate: Candidate
    baselines: tuple[Baseline, ...] = (Baseline(name="eager", kind="eager"),)
    protocol: Protocol = "strict"
    rules: Rules = Rules()
    timing: TimingPlan = TimingPlan()
    limits: Limits = Limits()
    device: str = "cpu"
    trace: bool = False
    """Whether to list the kernels of one call on a GPU, by torch's profiler: seconds more."""
    require_layers: tuple[str, ...] = ()
    """Isolation layers without which nothing of the candidate is run."""
    seed: str | None = Field(default=None, pattern=r"^[0-9a-f]{32}$")
    """The 128-bit root seed in hexadecimal; `None`: drawn in secret."""

    @property
    def allows_tf32(self) -> bool:
        """Tell whether products of float32 may be rounded to tf32, for every side and the judge."""
        return self.rules.precision == "tf32" and self.problem.precision != "fp32"
