"""How fast is it? Paired blocks on one device, every call checkable.

In a block each side is called once in order and once in reverse (ABBA for two sides). Before each
call the judge writes fresh contents into one of a ring of slots, so neither timed side refreshes
anything. When to stop within a pair of processes is decided by the width of the interval alone.
"""

from __future__ import annotations

import math
import time
from typing import Protocol

from tilewright.evaluator.judge_client.input_sample import InputSampleInfo
from tilewright.evaluator.pipeline.session import SLOTS, EvaluationSession
from tilewright.evaluator.runners.cpu_runner import CallTiming, Runner
from tilewright.evaluator.timing.calibration import planned_replicates
from tilewright.evaluator.timing.case_timings import (
    CaseTimes,
    between_process_sigma,
    half_width,
    needs_replicate,
    replicates_half_width,
    shortest,
    undetectable_work_s,
)
from tilewright.evaluator.timing.cpu_clock import Clock, TimedCall, clock_of
from tilewright.evaluator.timing.gpu_clock import measure_call_latency
from tilewright.records import Case
from tilewright.scoring import bootstrap

__all__ = ["time_case", "time_case_official", "time_uncontended"]

BASE_SAMPLES = 3
WARM_UP_CALLS = 3
OFFICIAL_TRIALS = 100
MAX_WARM_UP_CALLS = 10
WARMUP_TOLERANCE = 0.05
CHECK_SHARE = 0.3
DELAYED_INPUT_MIN_BYTES = 1 << 20
"""Inputs from which on a side gets a part of them only when it is armed."""
RING_BYTES = 1 << 30
SOUGHT_SHARE = 0.5
"""Short calls: the interval need not be narrower than this share of the work that could go
undetected. If that is wider than the planned target, half of the minimum blocks are enough."""
ALONE_CALLS = 9
MAX_REPLICATE_FACTOR = 2
"""At most this many times the planned process replicates are made."""
WIDE_HALF_WIDTH = 0.03
"""One more replicate is made while the interval over all of them has a larger half-width."""
TIME_FOR_MORE = 3.0
"""How many times as long as the last pair took must be left for one that was not planned."""
HOST_REPLICATES = 4
"""Pairs of processes in which calls on a device are timed whose launches are in their times."""
LOOK_EVERY = 4
"""Blocks from one look at the interval to the next."""
MIN_BLOCKS_AT_LIMIT = 6
"""Blocks that are timed even when they take longer than the plan allows."""


class Reopen(Protocol):
    """How all sides are replaced by others; `fresh`: by none that served an earlier candidate."""

    def __call__(self, *, fresh: bool) -> None:
        """Replace them."""


def time_case(
    session: EvaluationSession,
    case: Case,
    names: list[str],
    reopen: Reopen | None = None,
) -> CaseTimes:
    """Time `names` (baselines first, `candidate` last) on one case until the interval is narrow.

    A call whose time varies more between processes than within one is timed in several process
    replicates (`planned_replicates`), each with a part of the blocks. More replicates follow if
    these disagree or may be noise; `reopen` starts fresh processes for a replicate.

    Raises:
        Ended: a side crashed, hung or raised.
    """
    begun = time.monotonic()
    samples = [session.sample(case, "nominal", 100 + k, timed=True) for k in range(BASE_SAMPLES)]
    clock = clock_of(session)
    moved = samples[0].size + samples[0].output_bytes
    on_gpu = session.host.device.is_gpu
    times = CaseTimes(case.name, moved_bytes=moved, on_device=on_gpu)
    for name in names:
        times.totals[name], times.outside[name] = [], []
    slots = SLOTS if SLOTS * samples[0].slot_bytes <= RING_BYTES else 2
    clock.unsettle(session, names)
    steady = _make_ready(clock, session, names, samples[0], slots)
    pairs = planned_replicates(steady * 1e6, moved, on_gpu=on_gpu) if reopen else 1
    if reopen and on_gpu and has_prior_work(session.runners["candidate"], pairs):
        reopen(fresh=False)
        _make_ready(clock, session, names, samples[0], slots)
    while True:
        _begin_replicate(clock, session, times, names, samples[0])
        if times.launching and reopen:
            pairs = max(pairs, HOST_REPLICATES)
        _time_replicate(clock, session, times, names, samples, slots, pairs)
        for name in names:
            session.runners[name].release()
        took = time.monotonic() - begun
        if times.wrong or reopen is None:
            break
        if not _needs_another_replicate(session, times, names, pairs, took):
            break
        begun = time.monotonic()
        # What is in doubt may be the luck of a baseline that was kept.
        reopen(fresh=len(times.replicate_starts) >= pairs)
        _make_ready(clock, session, names, samples[0], slots)
    if on_gpu and not times.wrong:
        measure_call_latency(session, times, names, samples[0])
    for sample in samples:
        session.forget(sample)
    return times


def has_prior_work(runner: Runner, pairs: int) -> bool:
    """Tell whether a candidate's process did something before that shows in its times.

    Calls that need several pairs are so short that the calls of correctness do (ADR 42).
    """
    return runner.profiled or (pairs > 1 and runner.judged)


def _needs_another_replicate(
    session: EvaluationSession, times: CaseTimes, names: list[str], pairs: int, took_s: float
) -> bool:
    """Tell whether a pair of processes is missing.

    Some are planned. More are made where those so far disagree. On a device, where a process costs
    more than the blocks that it makes, more are made where the sides differ by no more than the
    processes of one function have: it may be these that do (ADR 42).
    """
    made = len(times.replicate_starts)
    if made < pairs:
        return True
    if time.monotonic() + TIME_FOR_MORE * took_s > session.deadline:
        # Nobody fails for an interval that we want narrower.
        return False
    known = session.calibration
    if times.on_device:
        more = session.request.timing.extra_replicates
        return any(
            needs_replicate(times, name, between_process_sigma(times, name, known), pairs, more)
            for name in names[:-1]
        )
    if pairs == 1 or made >= MAX_REPLICATE_FACTOR * pairs:
        return False
    sigma = between_process_sigma(times, names[0], known)
    return any(replicates_half_width(times, name, sigma) > WIDE_HALF_WIDTH for name in names[:-1])


def _make_ready(
    clock: Clock, session: EvaluationSession, names: list[str], sample: InputSampleInfo, slots: int
) -> float:
    """Give every side room and warm it up; return the seconds of a call of the first one."""
    steady = []
    for name in names:
        runner = session.runners[name]
        runner.stage = "timing"
        session.reserve_inputs(runner, slots * sample.slot_bytes)
        steady.append(_warm_up(clock, session, runner, sample, slots))
    return steady[0]


def _begin_replicate(
    clock: Clock,
    session: EvaluationSession,
    times: CaseTimes,
    names: list[str],
    sample: InputSampleInfo,
) -> None:
    times.replicate_starts.append(times.blocks)
    for name in names:
        runner = session.runners[name]
        times.processes.setdefault(name, set()).add(runner.child.pid)
        runner.forbid_processes()
    clock.settle(session, times, names, sample)


def _time_replicate(
    clock: Clock,
    session: EvaluationSession,
    times: CaseTimes,
    names: list[str],
    samples: list[InputSampleInfo],
    slots: int,
    pairs: int,
) -> None:
    """Make blocks with the sides as they are, until this pair's part of the interval is narrow."""
    plan, start, first = session.request.timing, time.monotonic(), times.blocks
    least, most = plan.min_blocks, plan.max_blocks
    if pairs > 1:
        least = max(least // pairs, MIN_BLOCKS_AT_LIMIT)
        most = max(most // pairs, least)
    soonest = max(least // 2, MIN_BLOCKS_AT_LIMIT)
    while times.blocks - first < most:
        _block(clock, session, times, names, samples, slots)
        times.blocks += 1
        made = times.blocks - first
        late = time.monotonic() - start > plan.max_s / pairs
        if late and made >= MIN_BLOCKS_AT_LIMIT:
            break
        if made >= soonest and (made % LOOK_EVERY == 0 or (made == soonest and pairs == 1)):
            target = plan.target_ci_half_width * math.sqrt(pairs)
            sought = SOUGHT_SHARE * undetectable_work_s(times) / shortest(times)
            if made >= least or sought > target:
                widths = [half_width(times, name) for name in names[:-1]]
                if max(widths) <= max(target, sought):
                    break
        if times.wrong:
            break


def time_case_official(session: EvaluationSession, case: Case, names: list[str]) -> CaseTimes:
    """Time by KernelBench's published rule: the candidate's calls, then each baseline's.

    Three warm-up calls and a hundred trials a side, one set of inputs, means, nothing compared.
    """
    sample = session.sample(case, "nominal", 100, timed=True)
    clock, on_device = clock_of(session), session.host.device.is_gpu
    moved = sample.size + sample.output_bytes
    times = CaseTimes(case.name, moved_bytes=moved, on_device=on_device)
    for name in ["candidate", *[name for name in names if name != "candidate"]]:
        runner = session.runners[name]
        runner.stage = "timing"
        session.reserve_inputs(runner, SLOTS * sample.slot_bytes)
        session.publish(runner, sample, 0)
        for _ in range(WARM_UP_CALLS):
            clock.publicly(session, runner, sample)
        calls = [clock.publicly(session, runner, sample) for _ in range(OFFICIAL_TRIALS)]
        times.totals[name] = [call.total_s for call in calls]
        times.outside[name] = [call.untimed_cpu_s for call in calls]
        if name == "candidate":
            times.launches += [call.result.launches for call in calls]
        session.call_s += sum(times.totals[name])
    times.totals = {name: times.totals[name] for name in names}
    times.blocks = OFFICIAL_TRIALS // 2
    session.forget(sample)
    return times


def time_uncontended(session: EvaluationSession, case: Case, name: str) -> float:
    """Return the median seconds of a side's calls while no candidate is alive.

    Raises:
        Ended: it failed.
    """
    sample = session.sample(case, "nominal", 100, timed=True)
    clock, runner = clock_of(session), session.runners[name]
    session.reserve_inputs(runner, sample.slot_bytes)
    calls = [clock.warm_up(session, runner, sample, 0) for _ in range(ALONE_CALLS)]
    session.call_s += sum(calls)
    session.forget(sample)
    return bootstrap.median(calls)


def _warm_up(
    clock: Clock, session: EvaluationSession, runner: Runner, sample: InputSampleInfo, slots: int
) -> float:
    """Call until three calls in a row agree, and return the seconds of the shortest.

    What is tuned or compiled is tuned then.

    Each slot is used, since memory that is touched for the first time makes its call slower.
    """
    recent: list[float] = []
    while len(recent) < MAX_WARM_UP_CALLS:
        recent.append(clock.warm_up(session, runner, sample, len(recent) % slots))
        last = recent[-WARM_UP_CALLS:]
        if len(recent) >= max(WARM_UP_CALLS, slots) and max(last) <= min(last) * (
            1 + WARMUP_TOLERANCE
        ):
            break
    session.call_s += sum(recent)
    return min(recent)


def _block(
    clock: Clock,
    session: EvaluationSession,
    times: CaseTimes,
    names: list[str],
    samples: list[InputSampleInfo],
    slots: int,
) -> None:
    # Who comes first changes at random, since the first call after a pause is slower.
    first = (
        names if session.choices("order", times.case, times.blocks).random() < 0.5 else names[::-1]
    )
    turns = [
        turn
        for half, order in enumerate((first, first[::-1]))
        for turn in _half(clock, session, times, order, samples, slots, half)
    ]
    clock.begin(session, turns[0])
    for turn, after in zip(turns, [*turns[1:], None], strict=True):
        timed = clock.call(session, times, turn, after)
        session.call_s += timed.total_s
        _note(times, turn, timed)


def _half(
    clock: Clock,
    session: EvaluationSession,
    times: CaseTimes,
    order: list[str],
    samples: list[InputSampleInfo],
    slots: int,
    half: int,
) -> list[TimedCall]:
    """Choose in secret what the calls of half a block get, and whether they are compared."""
    choices = session.choices("timed", times.case, times.blocks, half)
    sample, slot = choices.choice(samples), choices.randrange(slots)
    perturbs = [choices.getrandbits(32) for _ in order]
    checked = sample.output_bytes <= clock.check_all_bytes or choices.random() < CHECK_SHARE
    # Of little a side that computes while it copies gains little.
    late = (
        choices.getrandbits(32) if clock.pairs and sample.size >= DELAYED_INPUT_MIN_BYTES else None
    )
    return [
        TimedCall(
            name,
            sample,
            slot,
            None if place and clock.pairs else perturbs[place],
            checked,
            place == len(order) - 1,
            late,
        )
        for place, name in enumerate(order)
    ]


def _note(times: CaseTimes, turn: TimedCall, timed: CallTiming) -> None:
    times.totals[turn.name].append(timed.total_s)
    times.outside[turn.name].append(timed.untimed_cpu_s)
    if turn.name == "candidate":
        times.launches.append(timed.result.launches)
        said = [{"dtype": item.dtype, "shape": item.shape} for item in timed.result.outputs]
        if said != turn.sample.outputs:
            times.wrong.append(f"expected {turn.sample.outputs}, got {said}"[:300])
