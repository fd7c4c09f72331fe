"""The interface of a clock, which times the calls of one case, one at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tilewright.evaluator.judge_client.input_sample import InputSampleInfo
from tilewright.evaluator.judge_client.messages import PublishSample
from tilewright.evaluator.runners.cpu_runner import CallTiming, Runner
from tilewright.evaluator.runners.pool import RunnerPool
from tilewright.evaluator.timing.case_timings import CaseTimes

__all__ = ["Clock", "TimedCall"]


@dataclass(frozen=True)
class TimedCall:
    """One planned call of a block.

    Attributes:
        name: the runner that is called.
        sample: its inputs.
        slot: the place of the inputs in the input memory.
        perturb: seed of a change of the inputs' values; `None`: they stay as they are.
        checked: whether outputs are compared.
        last: whether it is the last call on these values, after which outputs can be compared.
        late: seed that selects the part of the inputs which the runner gets only when it is ready.
    """

    name: str
    sample: InputSampleInfo
    slot: int
    perturb: int | None
    checked: bool
    last: bool
    late: int | None = None

    @property
    def base(self) -> int:
        """Return where the inputs begin in the input memory, in bytes."""
        return self.slot * self.sample.slot_bytes

    def published(self) -> PublishSample:
        """Return what the judge needs to write the inputs of this call."""
        return PublishSample(self.sample.name, self.name, self.base, self.perturb, self.late)


class Clock(Protocol):
    """Times calls, one at a time."""

    check_all_bytes: int
    """Outputs of a timed call up to this size are always compared; larger ones at random."""
    pairs: bool
    """Whether the calls of half a block get the same values, so that the outputs of the baseline
    are what is expected of the candidate."""

    def prepare_block(self, pool: RunnerPool, call: TimedCall) -> None:
        """Prepare the first call of a block."""

    def reset_mode(self, pool: RunnerPool, names: list[str]) -> None:
        """Undo for these runners what `choose_mode` did for an earlier case."""

    def choose_mode(
        self, pool: RunnerPool, times: CaseTimes, names: list[str], sample: InputSampleInfo
    ) -> None:
        """Find out once how the calls of this case are timed, and set these runners to it."""

    def call(
        self, pool: RunnerPool, times: CaseTimes, call: TimedCall, after: TimedCall | None
    ) -> CallTiming:
        """Make one call, have its outputs compared, and record what the judge saw."""

    def warm_up(
        self, pool: RunnerPool, runner: Runner, sample: InputSampleInfo, slot: int
    ) -> float:
        """Make one call that does not count; return its seconds."""

    def time_officially(
        self, pool: RunnerPool, runner: Runner, sample: InputSampleInfo
    ) -> CallTiming:
        """Make one call on unchanged inputs, as KernelBench's published rules time it."""
