"""How fast is it? Paired blocks on shared cores, by the supervisor's clock, every call checkable.

In a block each side is called once in order and once in reverse (ABBA for two sides). Before each
call the judge writes fresh contents into one of a ring of slots, so neither timed side refreshes
anything. The stop rule sees the width of the interval and nothing else.

A call lasts from its release until its side says where dense outputs lie. That is the side's own
word, but the whole side stands still from there on, and the judge reads the outputs in its memory:
nothing is computed, copied or swapped after the stamp.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tilewright.evaluator.evaluation import SLOTS, Drawn, Evaluation
from tilewright.evaluator.sides import Side, Timed
from tilewright.records import Case, Comparison, Timing
from tilewright.scoring import statistics

__all__ = ["CaseTimes", "compare", "time_case", "time_case_officially"]

BASE_DRAWS = 3
WARM_UP_CALLS = 3
OFFICIAL_TRIALS = 100
MAX_WARM_UP_CALLS = 10
STEADY = 0.05
CHECK_ALL_BYTES = 4 << 20
CHECK_SHARE = 0.3
LOOK_SHARE, WINDOWS, WINDOW_BYTES = 0.25, 8, 512
"""In how many timed calls the inputs are looked at, and how much of them."""
RING_BYTES = 1 << 30
HIDDEN_FLOOR_S, HIDDEN_SHARE = 1e-5, 0.05
"""Work beside a call that is not charged: this, and this share of what the harness does there."""
SHORT_SHARE = 0.05
"""A call is `short` when more than this share of it could be hidden."""
SOUGHT_SHARE = 0.25
"""No interval is sought that is narrower than this share of what could be hidden beside a call."""
MIN_BLOCKS_AT_LIMIT = 6
"""Blocks that are timed even when they take longer than the plan allows."""


@dataclass
class CaseTimes:
    """Everything that timing one case showed. Times in seconds, per side in order of calls."""

    case: str
    totals: dict[str, list[float]] = field(default_factory=dict)
    outside: dict[str, list[float]] = field(default_factory=dict)
    disturbed: list[float] = field(default_factory=list)
    """CPU seconds that the candidate used while a baseline was being timed, over that call."""
    wrong: list[str] = field(default_factory=list)
    mutated: list[str] = field(default_factory=list)
    launches: list[int] = field(default_factory=list)
    checked: int = 0
    blocks: int = 0
    moved_bytes: int = 0
    """Bytes of the inputs and outputs of one call."""


@dataclass(frozen=True)
class _Turn:
    """One call of a block: whose, which inputs, where, stirred with what, compared or not."""

    name: str
    drawn: Drawn
    slot: int
    stir: int | None
    checked: bool
    last: bool
    """Whether it is the last call with these contents, after which outputs can be compared."""

    @property
    def base(self) -> int:
        """Return where the inputs begin in the arena, in bytes."""
        return self.slot * self.drawn.slot_bytes

    def published(self) -> dict[str, Any]:
        """Return what the judge needs to write this turn's inputs."""
        return {
            "draw": self.drawn.name,
            "side": self.name,
            "base": self.base,
            "stir": self.stir,
        }


def time_case(evaluation: Evaluation, case: Case, names: list[str]) -> CaseTimes:
    """Time `names` (baselines first, `candidate` last) on one case until the interval is narrow.

    Raises:
        Ended: a side crashed, hung or raised.
    """
    draws = [evaluation.draw(case, "nominal", 100 + k) for k in range(BASE_DRAWS)]
    times = CaseTimes(case.name, moved_bytes=draws[0].size + draws[0].output_bytes)
    for name in names:
        times.totals[name], times.outside[name] = [], []
    slots = SLOTS if SLOTS * draws[0].slot_bytes <= RING_BYTES else 2
    for name in names:
        side = evaluation.sides[name]
        side.stage = "timing"
        evaluation.make_room(side, slots * draws[0].slot_bytes)
        _warm_up(evaluation, side, draws[0], slots)
    plan = evaluation.request.timing
    start = time.monotonic()
    while times.blocks < plan.max_blocks:
        _block(evaluation, times, names, draws, slots)
        times.blocks += 1
        late = time.monotonic() - start > plan.max_s
        if late and times.blocks >= MIN_BLOCKS_AT_LIMIT:
            break
        if times.blocks >= plan.min_blocks and times.blocks % 4 == 0:
            widths = [_half_width(times, name) for name in names[:-1]]
            sought = SOUGHT_SHARE * hideable_s(times) / _shortest(times)
            if max(widths) <= max(plan.target_half_width, sought):
                break
        if times.wrong:
            break
    for drawn in draws:
        evaluation.forget(drawn)
    return times


def time_case_officially(evaluation: Evaluation, case: Case, names: list[str]) -> CaseTimes:
    """Time by KernelBench's published rule: the candidate's calls, then each baseline's.

    Three warm-up calls and a hundred trials a side, one set of inputs, means, nothing compared.
    """
    drawn = evaluation.draw(case, "nominal", 100)
    times = CaseTimes(case.name, moved_bytes=drawn.size + drawn.output_bytes)
    for name in ["candidate", *[name for name in names if name != "candidate"]]:
        side = evaluation.sides[name]
        side.stage = "timing"
        evaluation.make_room(side, SLOTS * drawn.slot_bytes)
        evaluation.publish(side, drawn, 0)
        fields = evaluation.fields_of(drawn, 0)
        for _ in range(WARM_UP_CALLS):
            side.timed_call(fields)
        calls = [side.timed_call(fields) for _ in range(OFFICIAL_TRIALS)]
        times.totals[name] = [call.total_s for call in calls]
        times.outside[name] = [call.outside_s for call in calls]
        if name == "candidate":
            times.launches += [call.result.launches for call in calls]
        evaluation.call_s += sum(times.totals[name])
    times.totals = {name: times.totals[name] for name in names}
    times.blocks = OFFICIAL_TRIALS // 2
    evaluation.forget(drawn)
    return times


def _warm_up(evaluation: Evaluation, side: Side, drawn: Drawn, slots: int) -> None:
    """Call until three calls in a row agree; what is tuned or compiled is tuned then.

    Each slot is used, since memory that is touched for the first time makes its call slower.
    """
    recent: list[float] = []
    while len(recent) < MAX_WARM_UP_CALLS:
        slot = len(recent) % slots
        evaluation.publish(side, drawn, slot)
        recent.append(side.timed_call(evaluation.fields_of(drawn, slot)).total_s)
        last = recent[-WARM_UP_CALLS:]
        if len(recent) >= max(WARM_UP_CALLS, slots) and max(last) <= min(last) * (1 + STEADY):
            break
    evaluation.call_s += sum(recent)


def _block(
    evaluation: Evaluation, times: CaseTimes, names: list[str], draws: list[Drawn], slots: int
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
        for turn in _half(evaluation, times, order, draws, slots, half)
    ]
    _publish(evaluation, turns[0])
    for turn, after in zip(turns, [*turns[1:], None], strict=True):
        side, candidate = evaluation.sides[turn.name], evaluation.sides["candidate"]
        fields = evaluation.fields_of(turn.drawn, turn.slot)
        # Its processes as they were at its last stamp: what came since is found below, and counts.
        before = candidate.child.cpu_s()
        timed = side.timed_call(fields, partial(_snapshot, evaluation, times, turn, after))
        if turn.name != "candidate":
            candidate.child.look()
            times.disturbed.append((candidate.child.cpu_s() - before) / timed.total_s)
        evaluation.call_s += timed.total_s
        _note(times, turn, timed)


def _half(
    evaluation: Evaluation,
    times: CaseTimes,
    order: list[str],
    draws: list[Drawn],
    slots: int,
    half: int,
) -> list[_Turn]:
    """Choose in secret what the calls of half a block get, and whether they are compared."""
    choices = evaluation.choices("timed", times.case, times.blocks, half)
    drawn, slot = choices.choice(draws), choices.randrange(slots)
    stir = choices.getrandbits(32)
    checked = drawn.output_bytes <= CHECK_ALL_BYTES or choices.random() < CHECK_SHARE
    return [
        _Turn(name, drawn, slot, None if place else stir, checked, place == len(order) - 1)
        for place, name in enumerate(order)
    ]


def _publish(evaluation: Evaluation, turn: _Turn) -> None:
    evaluation.publish(evaluation.sides[turn.name], turn.drawn, turn.slot, turn.stir)


def _snapshot(evaluation: Evaluation, times: CaseTimes, turn: _Turn, after: _Turn | None) -> None:
    """Have the judge copy the outputs away while their side stands still, and refresh the next."""
    alone = "eager" not in evaluation.sides
    answer = evaluation.ask(
        "timed",
        {
            "draw": turn.drawn.name,
            "side": turn.name,
            "base": turn.base,
            "addresses": evaluation.sides[turn.name].output_addresses(len(turn.drawn.outputs)),
            "look": _windows(evaluation, times, turn),
            "keep": turn.checked and turn.name in ("candidate", "eager"),
            "expect": turn.checked and turn.name == "candidate" and alone,
            "compare": turn.checked and turn.last,
            "next": after.published() if after else None,
        },
    )
    if turn.name == "candidate":
        times.mutated += [item for item in answer["mutated"] if item not in times.mutated]
    if turn.checked and turn.last:
        times.checked += 1
        if answer["wrong"]:
            times.wrong.append(answer["message"])


def _windows(evaluation: Evaluation, times: CaseTimes, turn: _Turn) -> list[list[int]]:
    """Choose in secret which bytes of a candidate's inputs are looked at after this call."""
    choices = evaluation.choices("windows", times.case, len(times.totals["candidate"]))
    size = turn.drawn.size
    if turn.name != "candidate" or turn.drawn.aliases or choices.random() > LOOK_SHARE:
        return []
    starts = [choices.randrange(max(size - WINDOW_BYTES, 1)) for _ in range(WINDOWS)]
    return [[start, min(start + WINDOW_BYTES, size)] for start in starts]


def _note(times: CaseTimes, turn: _Turn, timed: Timed) -> None:
    times.totals[turn.name].append(timed.total_s)
    times.outside[turn.name].append(timed.outside_s)
    if turn.name == "candidate":
        times.launches.append(timed.result.launches)
        said = [{"dtype": item.dtype, "shape": item.shape} for item in timed.result.outputs]
        if said != turn.drawn.outputs:
            times.wrong.append(f"expected {turn.drawn.outputs}, got {said}"[:300])


def hideable_s(times: CaseTimes) -> float:
    """Return the seconds of work beside a call that cannot be told from the harness's own."""
    return HIDDEN_FLOOR_S + HIDDEN_SHARE * _usual_outside(times)


def _usual_outside(times: CaseTimes) -> float:
    # By name, not by place: under the published rules the candidate is timed first.
    baselines = [calls for name, calls in times.outside.items() if name != "candidate"]
    return max(min(statistics.median(calls) for calls in baselines), 0.0)


def net(times: CaseTimes, name: str) -> list[float]:
    """Return a side's call times in seconds, work that it did beside its calls included.

    Whatever a side does between two calls beyond what a baseline does there counts as if it were
    done in the call, for all sides alike.
    """
    limit = _usual_outside(times) + hideable_s(times)
    return [
        total + max(outside - limit, 0.0)
        for total, outside in zip(times.totals[name], times.outside[name], strict=True)
    ]


def is_short(times: CaseTimes, baseline: str) -> bool:
    """Tell whether a call is so short that what a side may hide beside it matters."""
    return hideable_s(times) > SHORT_SHARE * statistics.median(net(times, baseline))


def _rows(times: CaseTimes, baseline: str) -> list[tuple[float, float, float, float]]:
    """Return one row a block: baseline, candidate, candidate, baseline, in microseconds."""
    ours, theirs = net(times, "candidate"), net(times, baseline)
    return [
        (theirs[i] * 1e6, ours[i] * 1e6, ours[i + 1] * 1e6, theirs[i + 1] * 1e6)
        for i in range(0, len(ours) - 1, 2)
    ]


def _shortest(times: CaseTimes) -> float:
    """Return the shortest call of a baseline, in seconds."""
    return min(min(net(times, name)) for name in list(times.totals)[:-1])


def _half_width(times: CaseTimes, baseline: str) -> float:
    ratios = statistics.paired_log_ratios(_rows(times, baseline))
    low, high = statistics.bootstrap_median_interval(ratios)
    return (high - low) / 2


def compare(
    times: CaseTimes, baseline: str, sigma: float, labels: tuple[str, ...], *, official: bool
) -> Comparison:
    """Return the comparison of the candidate with one baseline on a timed case.

    For short calls the lower end allows for what the candidate may have hidden.

    Args:
        times: at least one block.
        baseline: a name among `times.totals`.
        sigma: standard deviation of the log ratio between processes, of the calibration.
        labels: facts about the measurement.
        official: use the published rule (ratio of means, no interval) instead.
    """
    rows = _rows(times, baseline)
    ours, theirs = _timing(times, "candidate"), _timing(times, baseline)
    raw = tuple(tuple(round(value, 3) for value in row) for row in rows)
    if official:
        means = [sum(times.totals[n]) / len(times.totals[n]) for n in (baseline, "candidate")]
        return Comparison(
            case=times.case,
            baseline=baseline,
            candidate=ours,
            reference=theirs,
            speedup=means[0] / means[1],
            speedup_low=None,
            speedup_high=None,
            blocks=len(rows),
            moved_bytes=times.moved_bytes,
            decision="no interval",
            labels=labels,
            raw_us=raw,
        )
    interval = statistics.speedup_interval(statistics.paired_log_ratios(rows), sigma)
    if is_short(times, baseline):
        allowed = ours.median_us / (ours.median_us + hideable_s(times) * 1e6)
        interval = statistics.Interval(interval.estimate, interval.low * allowed, interval.high)
    return Comparison(
        case=times.case,
        baseline=baseline,
        candidate=ours,
        reference=theirs,
        speedup=interval.estimate,
        speedup_low=interval.low,
        speedup_high=interval.high,
        blocks=len(rows),
        moved_bytes=times.moved_bytes,
        decision=statistics.decide(interval),
        labels=labels,
        raw_us=raw,
    )


def _timing(times: CaseTimes, name: str) -> Timing:
    values = [value * 1e6 for value in net(times, name)]
    low, high = statistics.bootstrap_median_interval(values)
    return Timing(
        median_us=statistics.median(values),
        low_us=low,
        high_us=high,
        samples=len(values),
        method="supervisor_clock",
    )
