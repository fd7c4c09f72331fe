"""Times one case in ABBA blocks, in the present processes.

In a block each implementation is called once in order and once in reverse order (ABBA for two).
Before each half of a block the problem's generator makes new inputs under a secret seed. At secret
moments between the halves each implementation is called on an input variation. These calls look the
same to it, but enter no ratio. Only the width of the interval decides when a replicate has enough
blocks.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tilewright.evaluator.devices.devices import Device
from tilewright.evaluator.judge_client.client import InputSampleInfo, has_only_tensors
from tilewright.evaluator.judge_client.messages import RenewSample
from tilewright.evaluator.runners.cpu_accounting import CallTiming
from tilewright.evaluator.runners.cpu_runner import Runner
from tilewright.evaluator.runners.pool import SLOTS, RunnerPool
from tilewright.evaluator.timing.calibration import Calibration
from tilewright.evaluator.timing.call_plan import (
    AS_CHECKED_S,
    AS_CHECKED_SHARE,
    CERTAIN_HALVES,
    HALF_TYPES,
    HEAP_OUTPUTS,
    MAX_AS_CHECKED_BYTES,
    MAX_HEAP_BYTES,
    VARIATIONS_KEY,
    chosen_variations,
    most_held,
    uneven,
)
from tilewright.evaluator.timing.case_timings import (
    CallSize,
    CaseTimes,
    TimedCall,
)
from tilewright.evaluator.timing.cpu_clock import HostClock
from tilewright.evaluator.timing.gpu_clock import CudaEventClock
from tilewright.evaluator.timing.stop_rule import StopRule
from tilewright.evaluator.timing.work_ahead import ready_bytes
from tilewright.records import Case, TimingPlan
from tilewright.records.codes import Stage
from tilewright.scoring import bootstrap

TIMED_REPEAT = 100
"""Number of the input sample of timed calls; correctness uses smaller ones."""
VARIED_SHARE = 0.08
"""Chance that calls on an input variation come before a half of a block, and again before it."""
RENEWALS = 3
"""Seeds that are tried until the generator gives inputs of the known shapes."""
WARM_UP_CALLS = 3
"""Calls in a row that must agree before a runner counts as warm; also KernelBench's number."""
MAX_WARM_UP_CALLS = 10
"""Most warm-up calls of one runner: a noisy machine never agrees."""
WARMUP_TOLERANCE = 0.05
"""Share by which those calls may differ."""
OFFICIAL_TRIALS = 100
"""Timed calls of KernelBench's published rule."""
CHECKED_SHARE = 0.3
"""Share of timed calls with large outputs whose outputs are compared."""
MAX_RING_BYTES = 1 << 30
"""If `SLOTS` slots take more than this, two slots must do."""
UNCONTENDED_CALLS = 9
"""Calls of a baseline after the candidate has ended, whose median shows its own speed."""


Clock = HostClock | CudaEventClock


def clock_of(device: Device) -> Clock:
    """Return the clock of a device."""
    return CudaEventClock() if device.is_gpu else HostClock()


@dataclass(frozen=True)
class CaseTimer:
    """Times the runners of a pool on one case. Lifetime: the case, in one process replicate."""

    pool: RunnerPool
    clock: Clock
    calibration: Calibration
    names: list[str]
    sample: InputSampleInfo
    slots: int
    times: CaseTimes
    variations: list[str]
    """Variations of calls that enter no ratio, chosen in secret."""
    base: str
    """The variation of the calls that enter the ratio."""
    plan: TimingPlan

    @classmethod
    def of(
        cls,
        pool: RunnerPool,
        calibration: Calibration,
        names: list[str],
        times: CaseTimes,
        case: Case,
        plan: TimingPlan,
    ) -> CaseTimer:
        """Return a timer with an input sample of its own, which adds to `times`."""
        sample = pool.judge.sample(case, "nominal", TIMED_REPEAT, timed=True)
        layout = sample.layout
        times.size = _size_of(sample)
        slots = SLOTS if SLOTS * sample.slot_bytes <= MAX_RING_BYTES else 2
        usable = pool.usable_variations.get(case.name, [])
        variations = chosen_variations(pool.context.choices(VARIATIONS_KEY, case.name), usable)
        half = any(item["dtype"] in HALF_TYPES for item in layout.outputs)
        base = uneven(usable, peaked=case.name in pool.peaked) if half else "nominal"
        clock = clock_of(pool.context.host.device)
        return cls(pool, clock, calibration, names, sample, slots, times, variations, base, plan)

    def make_ready(self) -> float:
        """Give every runner memory and warm it up; return the seconds of the first one's call."""
        steady_s = []
        if isinstance(self.clock, CudaEventClock):
            # A cached runner may still have the mode of an earlier evaluation.
            self.clock.reset_mode(self.pool, self.names)
        for name in self.names:
            runner = self.pool.runners[name]
            runner.stage = Stage.TIMING
            runner.max_held = most_held(self.sample.layout.output_bytes)
            heap = min(HEAP_OUTPUTS * self.sample.layout.output_bytes, MAX_HEAP_BYTES)
            self.pool.reserve_inputs(runner, self.slots * self.sample.slot_bytes, heap)
            steady_s.append(self._warm_up(runner))
        return steady_s[0]

    def _warm_up(self, runner: Runner) -> float:
        """Call until three calls in a row agree, and return the seconds of the shortest."""
        # Kernels are tuned and compiled now. The first use of each slot makes a call slower.
        recent: list[float] = []
        while len(recent) < MAX_WARM_UP_CALLS:
            slot = len(recent) % self.slots
            recent.append(self.clock.warm_up(self.pool, runner, self.sample, slot))
            last = recent[-WARM_UP_CALLS:]
            enough = len(recent) >= max(WARM_UP_CALLS, self.slots)
            if enough and max(last) <= min(last) * (1 + WARMUP_TOLERANCE):
                break
        self.pool.call_s += sum(recent)
        return min(recent)

    def begin_replicate(self) -> None:
        """Record the processes of a replicate, and let them start no others."""
        self.times.replicate_starts.append(self.times.blocks)
        for name in self.names:
            runner = self.pool.runners[name]
            self.times.processes.setdefault(name, set()).add(runner.child.pid)
            runner.forbid_processes()
        if not self.times.on_device:
            ours, theirs = (self.pool.runners[name] for name in ("candidate", self.names[0]))
            harness = self.times.harness
            harness.empty_call_s = max(harness.empty_call_s, ours.empty_call_s)
            ready = ready_bytes(ours, theirs, self.times.size.output_bytes)
            self.times.memory.ready_bytes.append(ready)
        if isinstance(self.clock, CudaEventClock):
            self.clock.choose_mode(self.pool, self.times, self.names, self.sample)

    def time_replicate(self, planned: int) -> None:
        """Time blocks in the present processes until their part of the interval is narrow."""
        rule = StopRule(self.plan, planned, self.calibration, self.names[:-1])
        first, strict = self.times.blocks, self._as_checked()
        start_s = time.monotonic() - self.times.harness.as_checked_s
        while not self.times.wrong:
            self._time_block([next(strict), next(strict)])
            self.times.blocks += 1
            made = self.times.blocks - first
            took_s = time.monotonic() - self.times.harness.as_checked_s - start_s
            if rule.is_over(self.times, made, took_s):
                break

    def _as_checked(self) -> Iterator[bool]:
        """Choose in secret which halves of blocks are compared by the rules of checked calls.

        One of the first `CERTAIN_HALVES` of a replicate is among them.
        """
        choices = self.pool.context.choices("as checked", self.times.case, self.times.blocks)
        fits = self.times.moved_bytes <= MAX_AS_CHECKED_BYTES
        certain = choices.randrange(CERTAIN_HALVES)
        for half in itertools.count():
            over = max(self.times.harness.as_checked_s / AS_CHECKED_S, 1.0)
            yield fits and (half == certain or choices.random() < AS_CHECKED_SHARE / over)

    def _time_block(self, as_checked: list[bool]) -> None:
        # The order is random, because the first call after a pause is slower.
        choices = self.pool.context.choices("block", self.times.case, self.times.blocks)
        first = self.names if choices.random() < 0.5 else self.names[::-1]
        for order, strictly in zip((first, first[::-1]), as_checked, strict=True):
            while self.variations and choices.random() < VARIED_SHARE:
                # In the order of the next timed calls. A candidate sees whether another call came
                # between two of its own, and the order of timed calls is known.
                self._time_half(order, choices, varied=True)
            self._time_half(order, choices, varied=False, as_checked=strictly)

    def _time_half(
        self, order: list[str], choices: random.Random, *, varied: bool, as_checked: bool = False
    ) -> None:
        """Make one call of each implementation on new inputs, chosen in secret."""
        clock, slot = self.clock, choices.randrange(self.slots)
        variation = choices.choice(self.variations) if self.variations else "nominal"
        sample, renewal = self._renewed(variation, choices, varied=varied)
        small = sample.layout.output_bytes <= clock.check_all_bytes
        checked = small or choices.random() < CHECKED_SHARE or as_checked
        for place, name in enumerate(order):
            if place and not clock.pairs:
                sample, renewal = self._renewed(variation, choices, varied=varied)
            used, last = variation if varied else "nominal", place == len(order) - 1
            call = TimedCall(name, sample, slot, used, checked, last, renewal, as_checked)
            timed = clock.call(self.pool, self.times, call)
            self.pool.call_s += timed.total_s
            self._record(call, timed)

    def _renewed(
        self, variation: str, choices: random.Random, *, varied: bool
    ) -> tuple[InputSampleInfo, RenewSample | None]:
        """Have the problem's generator make new inputs under a secret seed.

        If it may be done while the runner queues its call, this returns the request, which is to be
        sent with the call.
        """
        forward_seed = choices.getrandbits(31)
        sample = replace(self.sample, forward_seed=forward_seed)
        with_call = self._renews_with_call()
        for _ in range(RENEWALS):
            seed = choices.getrandbits(63)
            message = RenewSample(sample.name, seed, forward_seed, variation, varied, self.base)
            if with_call:
                return sample, message
            answer = self.pool.judge.request(message)
            sample = replace(sample, layout=replace(sample.layout, tree=answer.tree))
            if answer.fresh:
                break
        return sample, None

    def _renews_with_call(self) -> bool:
        """Tell whether the judge may make inputs while the runner queues its call on a device.

        The runner then needs no value of them, and the times include no work of the host.
        """
        readings = self.times.gpu
        early = readings.renews_early or readings.includes_host
        return self.times.on_device and not early and has_only_tensors(self.sample.layout.tree)

    def _record(self, call: TimedCall, timed: CallTiming) -> None:
        times = self.times
        if call.varied:
            times.varied[call.name].append((call.variation, timed.total_s))
        else:
            times.total_s[call.name].append(timed.total_s)
            times.untimed_cpu_s[call.name].append(timed.untimed_cpu_s)
        if call.name == "candidate":
            times.launches.append(timed.result.launches)
            found = [{"dtype": item.dtype, "shape": item.shape} for item in timed.result.outputs]
            if found != call.sample.layout.outputs:
                times.wrong.append(f"expected {call.sample.layout.outputs}, got {found}"[:300])


def time_case_official(pool: RunnerPool, case: Case, names: list[str]) -> CaseTimes:
    """Time by KernelBench's published rule: the candidate's calls, then each baseline's.

    Three warm-up calls and a hundred trials each, one set of inputs, means, no comparison.
    """
    sample = pool.judge.sample(case, "nominal", TIMED_REPEAT, timed=True)
    device = pool.context.host.device
    clock = clock_of(device)
    times = CaseTimes(case.name, size=_size_of(sample), on_device=device.is_gpu)
    for name in ["candidate", *[name for name in names if name != "candidate"]]:
        runner = pool.runners[name]
        runner.stage = Stage.TIMING
        pool.reserve_inputs(runner, SLOTS * sample.slot_bytes)
        if device.is_gpu:
            pool.publish(runner, sample, 0)
        for _ in range(WARM_UP_CALLS):
            clock.time_officially(pool, runner, sample)
        calls = [clock.time_officially(pool, runner, sample) for _ in range(OFFICIAL_TRIALS)]
        times.total_s[name] = [call.total_s for call in calls]
        times.untimed_cpu_s[name] = [call.untimed_cpu_s for call in calls]
        if name == "candidate":
            times.launches += [call.result.launches for call in calls]
        pool.call_s += sum(times.total_s[name])
    times.total_s = {name: times.total_s[name] for name in names}
    times.blocks = OFFICIAL_TRIALS // 2
    pool.judge.forget(sample)
    return times


def time_uncontended(
    pool: RunnerPool, case: Case, name: str, times: CaseTimes, *, officially: bool = False
) -> float:
    """Return the median seconds of a runner's calls while no candidate is alive.

    They are made as the timed calls of `times` were: `officially` by the published rules.
    """
    sample = pool.judge.sample(case, "nominal", TIMED_REPEAT, timed=True)
    clock, runner = clock_of(pool.context.host.device), pool.runners[name]
    pool.reserve_inputs(runner, sample.slot_bytes)
    if officially:
        pool.publish(runner, sample, 0)
        timed = [clock.time_officially(pool, runner, sample) for _ in range(UNCONTENDED_CALLS)]
        calls = [call.total_s for call in timed]
    else:
        if isinstance(clock, CudaEventClock):
            # The runner has the mode of the case that was timed last.
            clock.use_mode(pool, times, [name])
        calls = [clock.warm_up(pool, runner, sample, 0) for _ in range(UNCONTENDED_CALLS)]
    pool.call_s += sum(calls)
    pool.judge.forget(sample)
    return bootstrap.median(calls)


def _size_of(sample: InputSampleInfo) -> CallSize:
    layout = sample.layout
    moved = layout.size + layout.output_bytes
    return CallSize(moved, sample.input_shapes(), layout.output_bytes, layout.random)
