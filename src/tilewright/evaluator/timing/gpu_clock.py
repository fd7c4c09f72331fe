"""How one call is timed on a GPU: by the judge's events around a call that was queued before.

If the baseline's launches take too long to be queued before the call, the times of all
implementations include launches (ADR 40). A queued part of them would differ from call to call.
If the baseline's calls wait for the device themselves, none can be queued whole. The gate then
opens as soon as such a call has had time to reach its wait.
"""

from __future__ import annotations

import time
from dataclasses import replace

from tilewright.evaluator.judge_client.client import InputSampleInfo
from tilewright.evaluator.judge_client.messages import FinishTimed, PublishSample
from tilewright.evaluator.runners.cpu_accounting import CallTiming
from tilewright.evaluator.runners.cpu_runner import Runner
from tilewright.evaluator.runners.gpu_runner import (
    QUEUE_TIMEOUT_S,
    GatedCall,
    GpuRunner,
    gated_call,
)
from tilewright.evaluator.runners.messages import Result
from tilewright.evaluator.runners.pool import RunnerPool
from tilewright.evaluator.timing.case_timings import CaseTimes, LaunchGateMode, TimedCall
from tilewright.scoring import bootstrap

LATENCY_CALLS = 10
"""Calls whose median is the latency that a Python caller sees."""
BATCH_CALLS = 16
"""Calls that are queued together for the time of back-to-back calls."""
MAX_BATCHED_S = 1e-4
"""Longer calls are not batched: their launches are no part of their time anyway."""
MIN_TIME_S = 1e-7
"""No time is reported below this: it is the scatter of the clock itself."""

OPEN_CALLS = 3
"""Calls with an open gate whose median shows how long a baseline's launches take."""
MIN_QUEUE_TIMEOUT_S = 1e-3
"""Least seconds that the gate stays closed for a call that waits for the device: some thirty
launches of Triton's."""
WAITING_FACTOR = 4.0
"""The gate stays closed for so many times the seconds of the baseline's call with an open gate."""


def profiled_call(pool: RunnerPool, runner: GpuRunner, sample: InputSampleInfo) -> Result:
    """Return the report of a call with events around the candidate's own launches."""
    publish = PublishSample(sample.name, runner.name, 0)
    fields = {**sample.call_fields(0), "profile": True}
    return gated_call(pool.judge, runner, fields, publish).result


def measure_call_latency(
    pool: RunnerPool, times: CaseTimes, names: list[str], sample: InputSampleInfo
) -> None:
    """Record for each runner the latency of a call, its peak memory, and back-to-back calls."""
    sequences = pool.context.host.sequences
    for name in names:
        runner = _on_device(pool.runners[name])
        fields = sample.call_fields(0)
        pool.publish(runner, sample, 0)
        calls = [runner.waited_call(fields, next(sequences)) for _ in range(LATENCY_CALLS)]
        times.gpu.call_latency_s[name] = [seconds for seconds, _ in calls]
        times.gpu.peak_bytes[name] = max(result.peak_bytes or 0 for _, result in calls)
        pool.call_s += sum(times.gpu.call_latency_s[name])
        if bootstrap.median(times.total_s[name]) <= MAX_BATCHED_S:
            batch = gated_call(pool.judge, runner, {**fields, "times": BATCH_CALLS})
            seconds = max(batch.seconds - runner.clock_excess_s, MIN_TIME_S)
            if not batch.early:
                times.gpu.back_to_back_s[name] = seconds / BATCH_CALLS
            pool.call_s += seconds


class CudaEventClock:
    """The judge's events on the device, less the time between them without any work."""

    check_all_bytes = 64 << 20
    pairs = False
    # A kernel that a candidate left running may see a baseline's inputs, but they are never the
    # candidate's own.

    def reset_mode(self, pool: RunnerPool, names: list[str]) -> None:
        """Set each runner to its default: launch gate closed first, all cores."""
        _set_mode(pool, names, QUEUE_TIMEOUT_S, pool.context.host.cores.runners)

    def choose_mode(
        self, pool: RunnerPool, times: CaseTimes, names: list[str], sample: InputSampleInfo
    ) -> None:
        """Include launches in the times, and use one core, if the baseline's launches are long.

        Only the first baseline decides. A candidate that was slow now and fast later would gain
        launches that it does not make.
        """
        baseline = _on_device(pool.runners[names[0]])
        if times.gpu.launch_gate is None:
            times.gpu.launch_gate = _launch_gate_mode(pool, baseline, sample)
        self.use_mode(pool, times, names)

    def use_mode(self, pool: RunnerPool, times: CaseTimes, names: list[str]) -> None:
        """Set each runner to the mode of a case; to the default if it has none."""
        mode = times.gpu.launch_gate or LaunchGateMode(QUEUE_TIMEOUT_S)
        cores = pool.context.host.cores.runners
        # Cores of one host differ by more than calls whose launches are long (docs/lab).
        _set_mode(pool, names, mode.queue_timeout_s, cores[:1] if mode.launching else cores)

    def call(self, pool: RunnerPool, times: CaseTimes, call: TimedCall) -> CallTiming:
        """Make one call on fresh inputs, and have its outputs compared."""
        runner, sample = _on_device(pool.runners[call.name]), call.sample
        own = call.name == "candidate"
        checked = own and call.checked
        finish = FinishTimed(
            sample.name,
            call.name,
            call.base,
            expect=checked,
            compare=checked,
            as_checked=own and call.as_checked,
        )
        fields = sample.call_fields(call.slot)
        baseline = next(name for name in times.total_s if name != "candidate")
        other, used = pool.runners[baseline if own else "candidate"].child.tree, 0.0
        watched = times.gpu.includes_host
        if watched:
            other.refresh()
            used = other.cpu_s()
        begun = time.perf_counter()
        made = gated_call(
            pool.judge,
            runner,
            fields,
            call.published(),
            finish,
            renewal=call.renewal,
            keep=checked,
        )
        if made.renewed is not None:
            tree, layout = made.renewed.tree, sample.layout
            # From now on inputs are made before the call, where several seeds are tried.
            times.gpu.renews_early |= not made.renewed.fresh or tree != layout.tree
            if tree != layout.tree:
                # The runner has read these inputs under another layout, whose writable places are
                # not those of this one. Without them an output in an input is copied in this call.
                places = replace(layout.places, writable=[])
                known = replace(sample, layout=replace(layout, tree=tree, places=places))
                return self.call(pool, times, replace(call, sample=known, renewal=None))
        if watched:
            # Processes that the candidate started meanwhile count too.
            other.refresh()
            # A process also uses some CPU time for the end of its own call before.
            share = (other.cpu_s() - used) / (time.perf_counter() - begun)
            (times.gpu.baseline_cpu if own else times.disturbed).append(share)
        if not call.varied:
            times.gpu.self_reported_s.setdefault(call.name, []).append(made.reported_s)
            if not made.early:
                times.gpu.queued_s.setdefault(call.name, []).append(made.queued_s)
        if own:
            times.record_answer(made.answer, own=True, compared=checked, nominal=not call.varied)
            times.gpu.early += made.early
        return _timing(runner, made)

    def warm_up(
        self, pool: RunnerPool, runner: Runner, sample: InputSampleInfo, slot: int
    ) -> float:
        """Make one call that does not count; return its seconds."""
        own = _on_device(runner)
        own.expect_case(sample.case)
        publish = PublishSample(sample.name, runner.name, slot * sample.slot_bytes)
        made = gated_call(pool.judge, own, sample.call_fields(slot), publish)
        own.was_early = made.early
        return _timing(own, made).total_s

    def time_officially(
        self, pool: RunnerPool, runner: Runner, sample: InputSampleInfo
    ) -> CallTiming:
        """Make one call between two events of the runner's own, as the published rules do.

        KernelBench clears the L2 cache before the first event (`time_execution_with_cuda_event` at
        its commit 423217d). The device is busy meanwhile, so that most launches take no time of
        the interval.
        """
        fields = {**sample.call_fields(0), "clears_cache": True}
        made = gated_call(pool.judge, _on_device(runner), fields, queued=False)
        return CallTiming(max(made.reported_s, MIN_TIME_S), 0.0, made.result)


def _set_mode(
    pool: RunnerPool, names: list[str], queue_timeout_s: float, cores: tuple[int, ...]
) -> None:
    for name in names:
        runner = _on_device(pool.runners[name])
        runner.queue_timeout_s = queue_timeout_s
        runner.child.tree.pin_main_thread(cores)


def _launch_gate_mode(
    pool: RunnerPool, runner: GpuRunner, sample: InputSampleInfo
) -> LaunchGateMode:
    """Return how the launch gate is used with this baseline, whose last warm-up call just ended."""
    if not runner.was_early:
        return LaunchGateMode(QUEUE_TIMEOUT_S)
    # A call that only waits for its device takes no longer than its kernels do.
    runner.queue_timeout_s = 0.0
    seconds = []
    for _ in range(OPEN_CALLS):
        pool.publish(runner, sample, 0)
        seconds.append(gated_call(pool.judge, runner, sample.call_fields(0)).seconds)
    runner.queue_timeout_s = QUEUE_TIMEOUT_S
    pool.call_s += sum(seconds)
    usual_s = bootstrap.median(seconds)
    if usual_s > QUEUE_TIMEOUT_S:
        return LaunchGateMode(0.0, launching=True)
    closed_s = max(MIN_QUEUE_TIMEOUT_S, WAITING_FACTOR * usual_s)
    return LaunchGateMode(min(closed_s, QUEUE_TIMEOUT_S), waits=True)


def _timing(runner: GpuRunner, made: GatedCall) -> CallTiming:
    return CallTiming(max(made.seconds - runner.clock_excess_s, MIN_TIME_S), 0.0, made.result)


def _on_device(runner: Runner) -> GpuRunner:
    if not isinstance(runner, GpuRunner):
        raise TypeError(f"{runner.name} is not on a device")
    return runner
