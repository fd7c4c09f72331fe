"""How one call is timed on a GPU: by the judge's events around a call that was queued before.

The judge closes its gate, the contestant queues its call behind it and says so, the judge queues
the copies of the outputs, wherever they lie, and opens the gate. What cannot be queued within
`QUEUE_S` waits for the device itself, or is of thousands of launches: then the gate is opened
first, and the whole side stands still while the copies are queued. Where a baseline's launches take
longer than that, they are in the times of all sides (ADR 40): ten milliseconds of launches ahead
would be a share of a call that differs from one to the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilewright.evaluator.device_side import QUEUE_S, DeviceSide
from tilewright.evaluator.sides import Ended, Side, Timed
from tilewright.evaluator.testimony import Result
from tilewright.scoring import statistics

if TYPE_CHECKING:
    from tilewright.evaluator.clocks import Turn
    from tilewright.evaluator.drawn import Drawn
    from tilewright.evaluator.evaluation import Evaluation
    from tilewright.evaluator.times import CaseTimes

__all__ = ["DeviceClock", "OwnShare", "calibrate", "launches_are_long", "look_beside", "own_share"]

CALIBRATION_CALLS = 15
SETTLING_CALLS = 3
WAITED_CALLS = 10
"""Calls by which is said what a Python caller waits."""
BATCH, BATCHED_S = 16, 1e-4
"""How many calls stand behind one gate for a batch, and how long one may take for that."""
KEPT = {"keep": False, "addresses": [], "look": [], "next": None}
"""What is not asked for after a call: outputs were copied when it was collected."""
SHORTEST_S = 1e-7
"""The clock's own scatter: nothing is said to take less."""
EMPTY: dict[str, Any] = {"t": "list", "v": []}
KNOWN_KERNEL = {
    "base": 0,
    "size": 0,
    "args": EMPTY,
    "grads": [],
    "grad_outputs": EMPTY,
    "forward_seed": 0,
    "expected": [],
}


@dataclass(frozen=True)
class Gated:
    """One gated call: seconds by the judge's events, and what was said and seen."""

    seconds: float
    result: Result
    early: bool
    answer: dict[str, Any]


def gated(
    evaluation: Evaluation,
    side: DeviceSide,
    fields: dict[str, Any],
    publish: dict[str, Any] | None = None,
    asked: dict[str, Any] | None = None,
    *,
    keep: bool = False,
    ahead: bool = True,
) -> Gated:
    """Make one call behind the gate; `asked` is what the judge does once it has ended.

    With `ahead` false the gate is open from the start, and launches are in the interval.

    Raises:
        Ended: the side failed, or its call does not end.
    """
    name, limit = side.name, side.limits.call_s
    sequence = next(evaluation.host.sequences)
    draw = asked["draw"] if asked else None
    kept = draw if keep else None
    gate = {"side": name, "publish": publish, "sequence": sequence, "keep": kept}
    evaluation.tell("gate", gate)
    try:
        if not ahead:
            evaluation.answered()
            evaluation.ask("open", {})
        # While the judge queues what comes before the call, the side queues the call.
        side.arm(fields, sequence)
        early = not side.is_queued(side.queue_s if ahead else limit)
        if ahead:
            evaluation.answered()
        if early:
            evaluation.ask("open", {})
            if not side.is_queued(limit) or not side.child.tree.freeze():
                raise side.late()
        places = side.output_addresses(len(fields["expected"]))
        collected = {"side": name, "draw": kept, "addresses": places}
        evaluation.tell("collect", collected)
        if early:
            evaluation.answered()
            side.child.tree.thaw()
        result = side.result()
        if not early:
            evaluation.answered()
        answer = evaluation.ask(
            "timed",
            {**(asked or {"draw": None}), **KEPT, "wait_s": limit},
        )
        if answer["seconds"] is None:
            raise side.late()
    except Ended:
        side.child.kill()
        while evaluation.unanswered:
            evaluation.answered()
        evaluation.ask("abandon", {"side": name})
        raise
    return Gated(answer["seconds"], result, early, answer)


def calibrate(evaluation: Evaluation, side: DeviceSide) -> float:
    """Return the seconds by which the judge's interval exceeds a kernel's own time.

    Before a candidate is loaded, so that the contestant's own events can be believed.
    """
    excess = []
    for _ in range(SETTLING_CALLS + CALIBRATION_CALLS):
        call = gated(evaluation, side, KNOWN_KERNEL)
        excess.append(call.seconds - (call.result.said_us or 0.0) / 1e6)
    return statistics.median(excess[SETTLING_CALLS:])


@dataclass(frozen=True)
class OwnShare:
    """One call with events around its own launches."""

    seconds: float
    """What passed between them: its own word."""
    launches: int


def own_share(evaluation: Evaluation, side: DeviceSide, drawn: Drawn) -> OwnShare:
    """Make one call; return what of it passed in own kernels, by the side's own events."""
    publish = {"draw": drawn.name, "side": side.name, "base": 0, "stir": None}
    fields = {**evaluation.fields_of(drawn, 0), "profile": True}
    call = gated(evaluation, side, fields, publish)
    return OwnShare((call.result.own_us or 0.0) / 1e6, call.result.launches)


def look_beside(evaluation: Evaluation, times: CaseTimes, names: list[str], drawn: Drawn) -> None:
    """Note of each side what stands beside its device time: what a caller waits, and a batch.

    Raises:
        Ended: a side failed.
    """
    for name in names:
        side = _on_device(evaluation.sides[name])
        fields = evaluation.fields_of(drawn, 0)
        evaluation.publish(side, drawn, 0)
        calls = [
            side.waited_call(fields, next(evaluation.host.sequences)) for _ in range(WAITED_CALLS)
        ]
        times.waited[name] = [seconds for seconds, _ in calls]
        times.peaks[name] = max(result.peak_bytes or 0 for _, result in calls)
        evaluation.call_s += sum(times.waited[name])
        if statistics.median(times.totals[name]) <= BATCHED_S:
            batch = gated(evaluation, side, {**fields, "times": BATCH})
            seconds = max(batch.seconds - side.clock_excess_s, SHORTEST_S)
            times.batched[name] = seconds / BATCH
            evaluation.call_s += seconds


class DeviceClock:
    """The judge's events on the device, less what is between them without any work."""

    check_all_bytes = 64 << 20
    pairs = False
    # A kernel that a candidate left behind may see a baseline's inputs: they are never its own.

    def begin(self, evaluation: Evaluation, turn: Turn) -> None:
        """Do nothing: inputs are written behind each call's own gate."""

    def unsettle(self, evaluation: Evaluation, names: list[str]) -> None:
        """Have sides be called as they were when they were opened."""
        for name in names:
            side = _on_device(evaluation.sides[name])
            side.queue_s = QUEUE_S
            side.child.tree.keep_on(evaluation.host.cores.sides)

    def settle(
        self, evaluation: Evaluation, times: CaseTimes, names: list[str], drawn: Drawn
    ) -> None:
        """Have launches in the times, and every side on one core, where the baseline's are long.

        The first baseline alone says so: a candidate that was slow now and quick later would have
        launches counted that it does not make.
        """
        baseline = _on_device(evaluation.sides[names[0]])
        if times.launching is None:
            times.launching = baseline.was_early and launches_are_long(evaluation, baseline, drawn)
        if times.launching:
            for name in names:
                side = _on_device(evaluation.sides[name])
                side.queue_s = 0.0
                # Cores of one host differ by more than these calls do (docs/lab).
                side.child.tree.keep_on(evaluation.host.cores.sides[:1])

    def call(
        self,
        evaluation: Evaluation,
        times: CaseTimes,
        turn: Turn,
        after: Turn | None,  # noqa: ARG002
    ) -> Timed:
        """Make one call on fresh inputs, and have its outputs compared."""
        side = _on_device(evaluation.sides[turn.name])
        fields = evaluation.fields_of(turn.drawn, turn.slot)
        own = turn.name == "candidate"
        checked = own and turn.checked
        asked = {"draw": turn.drawn.name, "side": turn.name, "base": turn.base}
        asked |= {"expect": checked, "compare": checked}
        other, used = evaluation.sides["candidate"].child.tree, 0.0
        watched = bool(times.launching) and not own
        if watched:
            other.look()
            used = other.cpu_s()
        call = gated(evaluation, side, fields, turn.published(), asked, keep=checked)
        if watched:
            # What it started meanwhile counts too.
            other.look()
            times.disturbed.append((other.cpu_s() - used) / max(call.seconds, SHORTEST_S))
        times.said.setdefault(turn.name, []).append((call.result.said_us or 0.0) / 1e6)
        if own:
            times.note_answer(call.answer, own=True, compared=checked)
            times.early += call.early
        return _timed(side, call)

    def warm_up(self, evaluation: Evaluation, side: Side, drawn: Drawn, slot: int) -> float:
        """Make one call that does not count."""
        own = _on_device(side)
        base = slot * drawn.slot_bytes
        publish = {"draw": drawn.name, "side": side.name, "base": base, "stir": None}
        call = gated(evaluation, own, evaluation.fields_of(drawn, slot), publish)
        own.was_early = call.early
        return _timed(own, call).total_s

    def publicly(self, evaluation: Evaluation, side: Side, drawn: Drawn) -> Timed:
        """Make one call between two events of the side's own, as the published rules do."""
        fields = evaluation.fields_of(drawn, 0)
        call = gated(evaluation, _on_device(side), fields, ahead=False)
        return Timed(max((call.result.said_us or 0.0) / 1e6, SHORTEST_S), 0.0, call.result)


def launches_are_long(evaluation: Evaluation, side: DeviceSide, drawn: Drawn) -> bool:
    """Tell whether a call whose gate is open takes longer than one is waited for.

    What only waits for its device takes no longer than its kernels do.
    """
    evaluation.publish(side, drawn, 0)
    side.queue_s = 0.0
    call = gated(evaluation, side, evaluation.fields_of(drawn, 0))
    side.queue_s = QUEUE_S
    evaluation.call_s += call.seconds
    return call.seconds > QUEUE_S


def _timed(side: DeviceSide, call: Gated) -> Timed:
    return Timed(max(call.seconds - side.clock_excess_s, SHORTEST_S), 0.0, call.result)


def _on_device(side: Side) -> DeviceSide:
    if not isinstance(side, DeviceSide):
        raise TypeError(f"{side.name} is not on a device")
    return side
