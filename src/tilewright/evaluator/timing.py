"""How fast is it? Paired blocks on one device, every call checkable.

In a block each side is called once in order and once in reverse (ABBA for two sides). Before each
call the judge writes fresh contents into one of a ring of slots, so neither timed side refreshes
anything. When to stop within a pair of processes is decided by the width of the interval alone.
"""

from __future__ import annotations

import math
import time
from typing import Protocol

from tilewright.evaluator.calibration import pairs_needed
from tilewright.evaluator.clocks import Clock, Turn, clock_of
from tilewright.evaluator.device_clock import look_beside
from tilewright.evaluator.drawn import Drawn
from tilewright.evaluator.evaluation import SLOTS, Evaluation
from tilewright.evaluator.sides import Side, Timed
from tilewright.evaluator.times import (
    CaseTimes,
    half_width,
    hideable_s,
    pairs_half_width,
    shortest,
    sigma_of,
    wants_more,
)
from tilewright.records import Case
from tilewright.scoring import statistics

__all__ = ["time_alone", "time_case", "time_case_officially"]

BASE_DRAWS = 3
WARM_UP_CALLS = 3
OFFICIAL_TRIALS = 100
MAX_WARM_UP_CALLS = 10
STEADY = 0.05
CHECK_SHARE = 0.3
LATE_BYTES = 1 << 20
"""Inputs from which on a side gets a part of them only when it is armed."""
RING_BYTES = 1 << 30
SOUGHT_SHARE = 0.5
"""No interval is sought that is narrower than this share of what could be hidden beside a call;
where that is more than the plan's own width, half its blocks are enough to see it."""
ALONE_CALLS = 9
MORE, WIDE = 2, 0.03
"""How many times as many pairs of processes as planned are made at most, and the half width of the
interval over them above which one more is made."""
TIME_FOR_MORE = 3.0
"""How many times as long as the last pair took must be left for one that was not planned."""
HOST_PAIRS = 4
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
    evaluation: Evaluation,
    case: Case,
    names: list[str],
    reopen: Reopen | None = None,
) -> CaseTimes:
    """Time `names` (baselines first, `candidate` last) on one case until the interval is narrow.

    A call that differs from one process to the next by more than its blocks scatter is timed in
    several pairs of processes (`pairs_needed`), each with a part of the blocks, and in more where
    these disagree or are in doubt; `reopen` replaces all sides by others.

    Raises:
        Ended: a side crashed, hung or raised.
    """
    begun = time.monotonic()
    draws = [evaluation.draw(case, "nominal", 100 + k, timed=True) for k in range(BASE_DRAWS)]
    clock = clock_of(evaluation)
    moved = draws[0].size + draws[0].output_bytes
    on_gpu = evaluation.host.device.is_gpu
    times = CaseTimes(case.name, moved_bytes=moved, on_device=on_gpu)
    for name in names:
        times.totals[name], times.outside[name] = [], []
    slots = SLOTS if SLOTS * draws[0].slot_bytes <= RING_BYTES else 2
    clock.unsettle(evaluation, names)
    steady = _make_ready(clock, evaluation, names, draws[0], slots)
    pairs = pairs_needed(steady * 1e6, moved, on_gpu=on_gpu) if reopen else 1
    if reopen and on_gpu and _has_a_past(evaluation.sides["candidate"], pairs):
        reopen(fresh=False)
        _make_ready(clock, evaluation, names, draws[0], slots)
    while True:
        _begin_pair(clock, evaluation, times, names, draws[0])
        if times.launching and reopen:
            pairs = max(pairs, HOST_PAIRS)
        _time_pair(clock, evaluation, times, names, draws, slots, pairs)
        for name in names:
            evaluation.sides[name].release()
        took = time.monotonic() - begun
        if times.wrong or reopen is None:
            break
        if not _wants_another_pair(evaluation, times, names, pairs, took):
            break
        begun = time.monotonic()
        # What is in doubt may be the luck of a baseline that was kept.
        reopen(fresh=len(times.pair_starts) >= pairs)
        _make_ready(clock, evaluation, names, draws[0], slots)
    if on_gpu and not times.wrong:
        look_beside(evaluation, times, names, draws[0])
    for drawn in draws:
        evaluation.forget(drawn)
    return times


def _has_a_past(side: Side, pairs: int) -> bool:
    """Tell whether a candidate's process did something before that shows in its times.

    Calls that need several pairs are so short that the calls of correctness do (ADR 28).
    """
    return side.profiled or (pairs > 1 and side.judged)


def _wants_another_pair(
    evaluation: Evaluation, times: CaseTimes, names: list[str], pairs: int, took_s: float
) -> bool:
    """Tell whether a pair of processes is missing.

    Some are planned. More are made where those so far disagree. On a device, where a process costs
    more than the blocks that it makes, more are made where the sides differ by no more than the
    processes of one function have: it may be these that do (ADR 27, 31, 35).
    """
    made = len(times.pair_starts)
    if made < pairs:
        return True
    if time.monotonic() + TIME_FOR_MORE * took_s > evaluation.deadline:
        # Nobody fails for an interval that we want narrower.
        return False
    known = evaluation.calibration
    if times.on_device:
        more = evaluation.request.timing.more_pairs
        return any(
            wants_more(times, name, sigma_of(times, name, known), pairs, more)
            for name in names[:-1]
        )
    if pairs == 1 or made >= MORE * pairs:
        return False
    sigma = sigma_of(times, names[0], known)
    return any(pairs_half_width(times, name, sigma) > WIDE for name in names[:-1])


def _make_ready(
    clock: Clock, evaluation: Evaluation, names: list[str], drawn: Drawn, slots: int
) -> float:
    """Give every side room and warm it up; return the seconds of a call of the first one."""
    steady = []
    for name in names:
        side = evaluation.sides[name]
        side.stage = "timing"
        evaluation.make_room(side, slots * drawn.slot_bytes)
        steady.append(_warm_up(clock, evaluation, side, drawn, slots))
    return steady[0]


def _begin_pair(
    clock: Clock, evaluation: Evaluation, times: CaseTimes, names: list[str], drawn: Drawn
) -> None:
    times.pair_starts.append(times.blocks)
    for name in names:
        side = evaluation.sides[name]
        times.processes.setdefault(name, set()).add(side.child.pid)
        side.seclude()
    clock.settle(evaluation, times, names, drawn)


def _time_pair(
    clock: Clock,
    evaluation: Evaluation,
    times: CaseTimes,
    names: list[str],
    draws: list[Drawn],
    slots: int,
    pairs: int,
) -> None:
    """Make blocks with the sides as they are, until this pair's part of the interval is narrow."""
    plan, start, first = evaluation.request.timing, time.monotonic(), times.blocks
    least, most = plan.min_blocks, plan.max_blocks
    if pairs > 1:
        least = max(least // pairs, MIN_BLOCKS_AT_LIMIT)
        most = max(most // pairs, least)
    soonest = max(least // 2, MIN_BLOCKS_AT_LIMIT)
    while times.blocks - first < most:
        _block(clock, evaluation, times, names, draws, slots)
        times.blocks += 1
        made = times.blocks - first
        late = time.monotonic() - start > plan.max_s / pairs
        if late and made >= MIN_BLOCKS_AT_LIMIT:
            break
        if made >= soonest and (made % LOOK_EVERY == 0 or (made == soonest and pairs == 1)):
            target = plan.target_half_width * math.sqrt(pairs)
            sought = SOUGHT_SHARE * hideable_s(times) / shortest(times)
            if made >= least or sought > target:
                widths = [half_width(times, name) for name in names[:-1]]
                if max(widths) <= max(target, sought):
                    break
        if times.wrong:
            break


def time_case_officially(evaluation: Evaluation, case: Case, names: list[str]) -> CaseTimes:
    """Time by KernelBench's published rule: the candidate's calls, then each baseline's.

    Three warm-up calls and a hundred trials a side, one set of inputs, means, nothing compared.
    """
    drawn = evaluation.draw(case, "nominal", 100, timed=True)
    clock, on_device = clock_of(evaluation), evaluation.host.device.is_gpu
    moved = drawn.size + drawn.output_bytes
    times = CaseTimes(case.name, moved_bytes=moved, on_device=on_device)
    for name in ["candidate", *[name for name in names if name != "candidate"]]:
        side = evaluation.sides[name]
        side.stage = "timing"
        evaluation.make_room(side, SLOTS * drawn.slot_bytes)
        evaluation.publish(side, drawn, 0)
        for _ in range(WARM_UP_CALLS):
            clock.publicly(evaluation, side, drawn)
        calls = [clock.publicly(evaluation, side, drawn) for _ in range(OFFICIAL_TRIALS)]
        times.totals[name] = [call.total_s for call in calls]
        times.outside[name] = [call.outside_s for call in calls]
        if name == "candidate":
            times.launches += [call.result.launches for call in calls]
        evaluation.call_s += sum(times.totals[name])
    times.totals = {name: times.totals[name] for name in names}
    times.blocks = OFFICIAL_TRIALS // 2
    evaluation.forget(drawn)
    return times


def time_alone(evaluation: Evaluation, case: Case, name: str) -> float:
    """Return the median seconds of a side's calls while no candidate is alive.

    Raises:
        Ended: it failed.
    """
    drawn = evaluation.draw(case, "nominal", 100, timed=True)
    clock, side = clock_of(evaluation), evaluation.sides[name]
    evaluation.make_room(side, drawn.slot_bytes)
    calls = [clock.warm_up(evaluation, side, drawn, 0) for _ in range(ALONE_CALLS)]
    evaluation.call_s += sum(calls)
    evaluation.forget(drawn)
    return statistics.median(calls)


def _warm_up(clock: Clock, evaluation: Evaluation, side: Side, drawn: Drawn, slots: int) -> float:
    """Call until three calls in a row agree, and return the seconds of the shortest.

    What is tuned or compiled is tuned then.

    Each slot is used, since memory that is touched for the first time makes its call slower.
    """
    recent: list[float] = []
    while len(recent) < MAX_WARM_UP_CALLS:
        recent.append(clock.warm_up(evaluation, side, drawn, len(recent) % slots))
        last = recent[-WARM_UP_CALLS:]
        if len(recent) >= max(WARM_UP_CALLS, slots) and max(last) <= min(last) * (1 + STEADY):
            break
    evaluation.call_s += sum(recent)
    return min(recent)


def _block(
    clock: Clock,
    evaluation: Evaluation,
    times: CaseTimes,
    names: list[str],
    draws: list[Drawn],
    slots: int,
) -> None:
    # Who comes first changes at random, since the first call after a pause is slower.
    first = (
        names
        if evaluation.choices("order", times.case, times.blocks).random() < 0.5
        else names[::-1]
    )
    turns = [
        turn
        for half, order in enumerate((first, first[::-1]))
        for turn in _half(clock, evaluation, times, order, draws, slots, half)
    ]
    clock.begin(evaluation, turns[0])
    for turn, after in zip(turns, [*turns[1:], None], strict=True):
        timed = clock.call(evaluation, times, turn, after)
        evaluation.call_s += timed.total_s
        _note(times, turn, timed)


def _half(
    clock: Clock,
    evaluation: Evaluation,
    times: CaseTimes,
    order: list[str],
    draws: list[Drawn],
    slots: int,
    half: int,
) -> list[Turn]:
    """Choose in secret what the calls of half a block get, and whether they are compared."""
    choices = evaluation.choices("timed", times.case, times.blocks, half)
    drawn, slot = choices.choice(draws), choices.randrange(slots)
    stirs = [choices.getrandbits(32) for _ in order]
    checked = drawn.output_bytes <= clock.check_all_bytes or choices.random() < CHECK_SHARE
    # Of little a side that computes while it copies gains little.
    late = choices.getrandbits(32) if clock.pairs and drawn.size >= LATE_BYTES else None
    return [
        Turn(
            name,
            drawn,
            slot,
            None if place and clock.pairs else stirs[place],
            checked,
            place == len(order) - 1,
            late,
        )
        for place, name in enumerate(order)
    ]


def _note(times: CaseTimes, turn: Turn, timed: Timed) -> None:
    times.totals[turn.name].append(timed.total_s)
    times.outside[turn.name].append(timed.outside_s)
    if turn.name == "candidate":
        times.launches.append(timed.result.launches)
        said = [{"dtype": item.dtype, "shape": item.shape} for item in timed.result.outputs]
        if said != turn.drawn.outputs:
            times.wrong.append(f"expected {turn.drawn.outputs}, got {said}"[:300])
