"""Times one case in ABBA blocks, in one or several process replicates.

In a block each implementation is called once in order and once in reverse order (ABBA for two).
Before each half of a block the problem's generator makes new inputs under a secret seed. At secret
moments between the halves each implementation is called on an input variation. These calls look the
same to it, but enter no ratio. Only the width of the interval decides when a replicate has enough
blocks.
"""

from __future__ import annotations

import math
import random
import time
from dataclasses import dataclass, replace
from typing import Protocol

from tilewright.evaluator.devices.devices import Device
from tilewright.evaluator.judge_client.client import InputSampleInfo
from tilewright.evaluator.judge_client.messages import RenewSample
from tilewright.evaluator.runners.cpu_runner import CallTiming, Runner
from tilewright.evaluator.runners.pool import SLOTS, RunnerPool
from tilewright.evaluator.timing.calibration import Calibration, planned_replicates
from tilewright.evaluator.timing.call_plan import (
    HALF_TYPES,
    HEAP_OUTPUTS,
    MAX_HEAP_BYTES,
    VARIATIONS_KEY,
    chosen_variations,
    most_held,
    uneven,
)
from tilewright.evaluator.timing.case_timings import (
    CaseTimes,
    TimedCall,
)
from tilewright.evaluator.timing.cpu_clock import HostClock
from tilewright.evaluator.timing.gpu_clock import CudaEventClock, measure_call_latency
from tilewright.evaluator.timing.replicate_policy import DEFAULT_POLICY
from tilewright.evaluator.timing.speedup import (
    between_process_sigma,
    estimated_interval,
)
from tilewright.evaluator.timing.stop_rule import StopRule
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
MAX_REPLICATE_FACTOR = 2
"""On a CPU at most this many times the planned replicates are made."""
WIDE_HALF_WIDTH = 0.03
"""On a CPU one more replicate is made while the interval's half-width exceeds this."""
TIME_FOR_MORE = 3.0
"""An unplanned replicate needs this many times as long as the last one took, or it is not made."""
LAUNCHING_REPLICATES = 4
"""Replicates on a device if the times include launches."""


Clock = HostClock | CudaEventClock


class Restart(Protocol):
    """Replaces all runners by other processes; with `fresh` by none that served a candidate."""

    def __call__(self, *, fresh: bool) -> None: ...


def time_case(
    pool: RunnerPool,
    calibration: Calibration,
    case: Case,
    names: list[str],
    restart: Restart | None = None,
    part_s: float | None = None,
) -> CaseTimes:
    """Time `names` (baselines first, `candidate` last) on one case until the interval is narrow.

    A call whose time varies more between processes than within one is timed in several process
    replicates (`planned_replicates`), each with a part of the blocks. More replicates follow if
    these disagree or may be noise; `restart` starts other processes for a replicate. `part_s` are
    the seconds that a problem of several cases has for each baseline of this one.
    """
    begun = time.monotonic()
    timer = CaseTimer.of(pool, calibration, case, names, part_s)
    times, on_gpu = timer.times, pool.context.host.device.is_gpu
    if isinstance(timer.clock, CudaEventClock):
        timer.clock.reset_mode(pool, names)
    steady_s = timer.make_ready()
    planned = planned_replicates(steady_s * 1e6, times.moved_bytes, on_gpu=on_gpu) if restart else 1
    if restart and on_gpu and has_prior_work(pool.runners["candidate"], planned):
        restart(fresh=False)
        timer.make_ready()
    while True:
        timer.begin_replicate()
        if times.gpu.launching and restart:
            planned = max(planned, LAUNCHING_REPLICATES)
        timer.time_replicate(planned)
        for name in names:
            pool.runners[name].allow_processes()
        took_s = time.monotonic() - begun
        if times.wrong or restart is None or not timer.needs_replicate(planned, took_s):
            break
        begun = time.monotonic()
        # An unplanned replicate must not share a cached baseline's process-to-process variation.
        restart(fresh=len(times.replicate_starts) >= planned)
        timer.make_ready()
    if on_gpu and not times.wrong:
        measure_call_latency(pool, times, names, timer.sample)
    pool.judge.forget(timer.sample)
    return times


def has_prior_work(runner: Runner, planned: int) -> bool:
    """Tell whether a candidate's process did work before that shows in its times."""
    # Calls that need several replicates are so short that earlier calls show in them (ADR 42).
    return runner.profiled or (planned > 1 and runner.judged)


def clock_of(device: Device) -> Clock:
    """Return the clock of a device."""
    return CudaEventClock() if device.is_gpu else HostClock()


@dataclass(frozen=True)
class CaseTimer:
    """Times the runners of a pool on one case. Lifetime: the timing of the case."""

    pool: RunnerPool
    clock: Clock
    calibration: Calibration
    names: list[str]
    sample: InputSampleInfo
    slots: int
    times: CaseTimes
    variations: list[str]
    """Variations on which the reference can judge this case, chosen in secret."""
    base: str
    """The variation of the calls that enter the ratio."""
    plan: TimingPlan
    no_more_at: float
    """Monotonic time after which no unplanned replicate begins."""

    @classmethod
    def of(
        cls,
        pool: RunnerPool,
        calibration: Calibration,
        case: Case,
        names: list[str],
        part_s: float | None = None,
    ) -> CaseTimer:
        """Return a timer with an input sample of its own."""
        plan, no_more_at = pool.context.request.timing, pool.deadline
        if part_s is not None:
            plan = plan.model_copy(update={"max_s": min(plan.max_s, part_s)})
            no_more_at = min(no_more_at, time.monotonic() + part_s * (len(names) - 1))
        sample = pool.judge.sample(case, "nominal", TIMED_REPEAT, timed=True)
        device, layout = pool.context.host.device, sample.layout
        moved_bytes = layout.size + layout.output_bytes
        times = CaseTimes(case.name, moved_bytes=moved_bytes, on_device=device.is_gpu)
        for name in names:
            times.total_s[name], times.untimed_cpu_s[name], times.varied[name] = [], [], []
        slots = SLOTS if SLOTS * sample.slot_bytes <= MAX_RING_BYTES else 2
        usable = pool.usable_variations.get(case.name, [])
        variations = chosen_variations(pool.context.choices(VARIATIONS_KEY, case.name), usable)
        half = any(item["dtype"] in HALF_TYPES for item in layout.outputs)
        base = uneven(usable) if half else "nominal"
        known = (names, sample, slots, times, variations, base, plan, no_more_at)
        return cls(pool, clock_of(device), calibration, *known)

    def make_ready(self) -> float:
        """Give every runner memory and warm it up; return the seconds of the first one's call."""
        steady_s = []
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
        if isinstance(self.clock, CudaEventClock):
            self.clock.choose_mode(self.pool, self.times, self.names, self.sample)

    def time_replicate(self, planned: int) -> None:
        """Time blocks in the present processes until their part of the interval is narrow."""
        rule = StopRule(self.plan, planned, self.calibration, self.names[:-1])
        start, first = time.monotonic(), self.times.blocks
        while not self.times.wrong:
            self._time_block()
            self.times.blocks += 1
            made = self.times.blocks - first
            if rule.is_over(self.times, made, time.monotonic() - start):
                break

    def needs_replicate(self, planned: int, took_s: float) -> bool:
        """Tell whether one more replicate is to be timed; the last one took `took_s` seconds.

        On a device a process costs more than the blocks that it times. More replicates follow
        there if the difference may be process-to-process variation (ADR 42). On a CPU more follow
        while the interval is wide.
        """
        times, known = self.times, self.calibration
        made = len(times.replicate_starts)
        if made < planned:
            return True
        now = time.monotonic()
        # No candidate fails because tilewright wants a narrower interval.
        if now > self.no_more_at or now + TIME_FOR_MORE * took_s > self.pool.deadline:
            return False
        if times.on_device:
            extra = self.plan.extra_replicates
            return any(
                DEFAULT_POLICY.needs_replicate(
                    times, name, between_process_sigma(times, name, known), planned, extra
                )
                for name in self.names[:-1]
            )
        if planned == 1 or made >= MAX_REPLICATE_FACTOR * planned:
            return False
        sigma = between_process_sigma(times, self.names[0], known)
        found = [estimated_interval(times, name, sigma) for name in self.names[:-1]]
        return max(math.log(one.high / one.low) / 2 for one in found) > WIDE_HALF_WIDTH

    def _time_block(self) -> None:
        # The order is random, because the first call after a pause is slower.
        choices = self.pool.context.choices("block", self.times.case, self.times.blocks)
        first = self.names if choices.random() < 0.5 else self.names[::-1]
        for order in (first, first[::-1]):
            while self.variations and choices.random() < VARIED_SHARE:
                # In the order of the next timed calls. A candidate sees whether another call came
                # between two of its own, and the order of timed calls is known.
                self._time_half(order, choices, varied=True)
            self._time_half(order, choices, varied=False)

    def _time_half(self, order: list[str], choices: random.Random, *, varied: bool) -> None:
        """Make one call of each implementation on new inputs, chosen in secret."""
        clock, slot = self.clock, choices.randrange(self.slots)
        variation = choices.choice(self.variations) if self.variations else "nominal"
        sample = self._renewed(variation, choices, varied=varied)
        small = sample.layout.output_bytes <= clock.check_all_bytes
        checked = small or choices.random() < CHECKED_SHARE
        for place, name in enumerate(order):
            if place and not clock.pairs:
                sample = self._renewed(variation, choices, varied=varied)
            used = variation if varied else "nominal"
            call = TimedCall(name, sample, slot, used, checked, last=place == len(order) - 1)
            timed = clock.call(self.pool, self.times, call)
            self.pool.call_s += timed.total_s
            self._record(call, timed)

    def _renewed(self, variation: str, choices: random.Random, *, varied: bool) -> InputSampleInfo:
        """Have the problem's generator make new inputs under a secret seed."""
        forward_seed = choices.getrandbits(31)
        tree = self.sample.layout.tree
        for _ in range(RENEWALS):
            seed = choices.getrandbits(63)
            message = RenewSample(
                self.sample.name, seed, forward_seed, variation, varied, self.base
            )
            answer = self.pool.judge.request(message)
            tree = answer.tree
            if answer.fresh:
                break
        layout = replace(self.sample.layout, tree=tree)
        return replace(self.sample, layout=layout, forward_seed=forward_seed)

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
    moved_bytes = sample.layout.size + sample.layout.output_bytes
    times = CaseTimes(case.name, moved_bytes=moved_bytes, on_device=device.is_gpu)
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


def time_uncontended(pool: RunnerPool, case: Case, name: str) -> float:
    """Return the median seconds of a runner's calls while no candidate is alive."""
    sample = pool.judge.sample(case, "nominal", TIMED_REPEAT, timed=True)
    clock, runner = clock_of(pool.context.host.device), pool.runners[name]
    pool.reserve_inputs(runner, sample.slot_bytes)
    calls = [clock.warm_up(pool, runner, sample, 0) for _ in range(UNCONTENDED_CALLS)]
    pool.call_s += sum(calls)
    pool.judge.forget(sample)
    return bootstrap.median(calls)
