"""How one call is timed on a CPU: by the supervisor's clock.

A call lasts from its release until the runner reports where its outputs lie. The report is the
runner's own, but the supervisor stops the whole runner then, and the judge reads the outputs in
the runner's memory. A runner that reports too early computes, copies or swaps nothing afterwards.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from tilewright.evaluator.judge_client.client import InputSampleInfo
from tilewright.evaluator.judge_client.messages import FinishTimed, WriteDelayed
from tilewright.evaluator.runners.cpu_runner import CallTiming, Runner
from tilewright.evaluator.runners.pool import RunnerPool
from tilewright.evaluator.timing.case_timings import CaseTimes, TimedCall

INSPECTED_SHARE = 0.25
"""Share of the candidate's timed calls after which its copy of the inputs is inspected. Each
inspection delays the next call; a candidate that changes inputs does so in more than one call."""
INSPECTED_WINDOWS = 8
"""Byte ranges that one inspection reads, at secret places."""
WINDOW_BYTES = 512
"""Length of each range."""


class HostClock:
    """The supervisor's own clock, between flags of a page that it shares with the runner."""

    check_all_bytes = 4 << 20
    """Outputs of a timed call up to this size are always compared; larger ones at random."""
    pairs = True
    """Whether the calls of half a block get the same values, so that the outputs of the baseline
    are what is expected of the candidate."""

    def call(
        self, pool: RunnerPool, times: CaseTimes, call: TimedCall, after: TimedCall | None
    ) -> CallTiming:
        """Make one call, have its outputs compared, and record what the judge saw.

        While its runner is stopped, the judge also writes the inputs of the call `after`.
        """
        runner, candidate = pool.runners[call.name], pool.runners["candidate"]
        # The candidate's processes as they were after its last call. New ones count below.
        before = candidate.child.tree.cpu_s()
        delayed = partial(_write_delayed, pool, call, call.late) if call.late is not None else None
        finish = partial(_finish, pool, times, call, after)
        timed = runner.timed_call(call.sample.call_fields(call.slot), finish, delayed)
        if call.name != "candidate":
            candidate.child.tree.refresh()
            times.disturbed.append((candidate.child.tree.cpu_s() - before) / timed.total_s)
        return timed

    def warm_up(
        self, pool: RunnerPool, runner: Runner, sample: InputSampleInfo, slot: int
    ) -> float:
        """Make one call that does not count; return its seconds."""
        pool.publish(runner, sample, slot)
        return runner.timed_call(sample.call_fields(slot)).total_s

    def time_officially(
        self, pool: RunnerPool, runner: Runner, sample: InputSampleInfo
    ) -> CallTiming:
        """Make one call on unchanged inputs, as KernelBench's published rules time it."""
        del pool
        return runner.timed_call(sample.call_fields(0))


def _write_delayed(pool: RunnerPool, call: TimedCall, late: int) -> bool:
    return pool.judge.request(WriteDelayed(call.sample.name, call.name, call.base, late)).written


def _finish(pool: RunnerPool, times: CaseTimes, call: TimedCall, after: TimedCall | None) -> None:
    """Let the judge copy the outputs of the stopped runner, and write the next call's inputs."""
    layout, own = call.sample.layout, call.name == "candidate"
    alone = "eager" not in pool.runners
    answer = pool.judge.request(
        FinishTimed(
            call.sample.name,
            call.name,
            call.base,
            addresses=pool.runners[call.name].output_addresses(len(layout.outputs)),
            look=_inspected(pool, times, call),
            # Always for a baseline: otherwise the time until its next call would tell the
            # candidate after it whether that call is compared.
            keep=call.name == "eager" or (call.checked and own),
            expect=call.checked and own and alone,
            compare=call.checked and call.last,
            next=after.published() if after else None,
        )
    )
    answer = replace(answer, alias=answer.alias and not layout.aliases)
    times.record_answer(answer, own=own, compared=call.checked and call.last)


def _inspected(pool: RunnerPool, times: CaseTimes, call: TimedCall) -> list[list[int]]:
    """Choose in secret which bytes of the candidate's inputs are inspected after this call."""
    choices = pool.context.choices("windows", times.case, len(times.total_s["candidate"]))
    size = call.sample.layout.size
    if call.name != "candidate" or call.sample.layout.aliases or choices.random() > INSPECTED_SHARE:
        return []
    starts = [choices.randrange(max(size - WINDOW_BYTES, 1)) for _ in range(INSPECTED_WINDOWS)]
    return [[start, min(start + WINDOW_BYTES, size)] for start in starts]
