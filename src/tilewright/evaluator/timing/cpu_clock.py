"""How one call is timed on a CPU: by the supervisor's clock and the runner's CPU clock.

A call lasts from the moment in which the runner can read its inputs until the runner is stopped
with its outputs. The runner reports when its outputs are there. The supervisor then stops the whole
runner, and the judge reads the outputs in the runner's memory. A runner that reports too early
computes, copies or swaps nothing afterwards.
"""

from __future__ import annotations

from tilewright.evaluator.judge_client.client import InputSampleInfo
from tilewright.evaluator.judge_client.messages import FinishTimed, PublishSample
from tilewright.evaluator.runners.cpu_accounting import CallTiming
from tilewright.evaluator.runners.cpu_runner import Runner
from tilewright.evaluator.runners.host_call import host_call
from tilewright.evaluator.runners.pool import RunnerPool
from tilewright.evaluator.timing.case_timings import CaseTimes, TimedCall

ALL_BYTES = 256 << 10
"""Inputs up to this size are compared as a whole after each call of the candidate."""
INSPECTED_WINDOWS = 16
"""Byte ranges of larger inputs that are compared after each of its calls, at secret places."""
WINDOW_BYTES = 512
"""Length of each range."""


class HostClock:
    """The supervisor's own clock, between flags of a page that it shares with the runner."""

    check_all_bytes = 4 << 20
    """Outputs of a timed call up to this size are always compared; larger ones at random."""
    pairs = True
    """Whether the calls of half a block get the same values, so that the outputs of the baseline
    are what is expected of the candidate."""

    def call(self, pool: RunnerPool, times: CaseTimes, call: TimedCall) -> CallTiming:
        """Make one call, have its outputs compared, and record what the judge saw."""
        runner, candidate = pool.runners[call.name], pool.runners["candidate"]
        # The candidate's processes as they were after its last call. New ones count below.
        before = candidate.child.tree.cpu_s()
        own, alone = call.name == "candidate", "eager" not in pool.runners
        finish = FinishTimed(
            call.sample.name,
            call.name,
            call.base,
            look=_inspected(pool, times, call) if own else [],
            keep=call.checked and own,
            expect=call.checked and own and alone,
            compare=call.checked and call.last,
            as_checked=call.as_checked and call.last,
        )
        fields = call.sample.call_fields(call.slot)
        made = host_call(pool.judge, runner, fields, call.published(), finish)
        times.record_answer(
            made.answer, own=own, compared=call.checked and call.last, nominal=not call.varied
        )
        if not own:
            candidate.child.tree.refresh()
            used_s = candidate.child.tree.cpu_s() - before
            times.disturbed.append(used_s / made.timing.total_s)
        return made.timing

    def warm_up(
        self, pool: RunnerPool, runner: Runner, sample: InputSampleInfo, slot: int
    ) -> float:
        """Make one call that does not count; return its seconds."""
        publish = PublishSample(sample.name, runner.name, slot * sample.slot_bytes)
        return host_call(pool.judge, runner, sample.call_fields(slot), publish).timing.total_s

    def time_officially(
        self, pool: RunnerPool, runner: Runner, sample: InputSampleInfo
    ) -> CallTiming:
        """Make one call on unchanged inputs, as KernelBench's published rules time it."""
        publish = PublishSample(sample.name, runner.name, 0)
        return host_call(pool.judge, runner, sample.call_fields(0), publish).timing


def _inspected(pool: RunnerPool, times: CaseTimes, call: TimedCall) -> list[list[int]] | None:
    """Choose in secret which bytes of the candidate's inputs are compared; `None`: all."""
    size = call.sample.layout.size
    if size <= ALL_BYTES:
        return None
    choices = pool.context.choices("windows", times.case, len(times.total_s["candidate"]))
    starts = [choices.randrange(size - WINDOW_BYTES) for _ in range(INSPECTED_WINDOWS)]
    return [[start, start + WINDOW_BYTES] for start in starts]
