"""Knock-out: a fresh contestant whose own launches do nothing. Still right means decoy."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.evaluator.clocks import clock_of
from tilewright.evaluator.device_clock import own_share
from tilewright.evaluator.device_side import DeviceSide
from tilewright.evaluator.evaluation import Evaluation
from tilewright.evaluator.sides import Ended
from tilewright.evaluator.weights import match_weights, publish_weights
from tilewright.records import Case, KernelTime, Profile
from tilewright.scoring import statistics

__all__ = ["KNOCKED_OUT", "KnockedOut", "knock_out", "profile", "trace"]

KNOCKED_OUT = "candidate-knockout"
"""Its side."""
CALLS = 5


@dataclass(frozen=True)
class KnockedOut:
    """A candidate without its own launches."""

    right: bool | None
    """Whether its outputs are right all the same; `None`: it did not finish, so it is no decoy."""
    call_s: float | None = None
    """What its call then takes on a device."""


def knock_out(evaluation: Evaluation, case: Case) -> KnockedOut:
    """Call the candidate on `case` without its own launches."""
    candidate = evaluation.request.candidate
    try:
        side = evaluation.open_side(KNOCKED_OUT, candidate, knockout=True)
        side.stage = "knockout"
        if evaluation.has_weights:
            match_weights(evaluation, KNOCKED_OUT)
            publish_weights(evaluation, KNOCKED_OUT)
        drawn = evaluation.draw(case, "nominal", 50)
        result = evaluation.call(side, drawn, 0)
        right = not evaluation.check(side, drawn, 0, result).wrong
        call_s = None
        if isinstance(side, DeviceSide) and not right:
            clock = clock_of(evaluation)
            with evaluation.host.timed():
                calls = [clock.warm_up(evaluation, side, drawn, 0) for _ in range(CALLS)]
            call_s = statistics.median(calls)
        evaluation.forget(drawn)
        return KnockedOut(right, call_s)
    except Ended:
        return KnockedOut(None)
    finally:
        if KNOCKED_OUT in evaluation.sides:
            evaluation.sides[KNOCKED_OUT].child.doom()


def trace(evaluation: Evaluation, case: Case) -> list[KernelTime]:
    """Return the kernels of one call of the candidate, by its own profiler; none on a CPU.

    Raises:
        Ended: it failed.
    """
    side = evaluation.sides["candidate"]
    if not isinstance(side, DeviceSide):
        return []
    drawn = evaluation.draw(case, "nominal", 52)
    evaluation.make_room(side, drawn.slot_bytes)
    evaluation.publish(side, drawn, 0)
    # The profiler's first use takes seconds.
    found = side.traced(evaluation.fields_of(drawn, 0), evaluation.request.limits.load_s)
    evaluation.forget(drawn)
    return found


def profile(evaluation: Evaluation, case: Case, knocked_out: KnockedOut) -> Profile | None:
    """Return how much of the candidate's device time its own kernels are; `None` on a CPU.

    The smaller of two figures: the share between events around its own launches, which is its own
    word, and what is saved when these are left out, which is the judge's. Both are held against
    calls without such events, whose own time would count as somebody else's work.

    Raises:
        Ended: it failed.
    """
    side = evaluation.sides["candidate"]
    if not isinstance(side, DeviceSide):
        return None
    drawn = evaluation.draw(case, "nominal", 51)
    evaluation.make_room(side, drawn.slot_bytes)
    clock = clock_of(evaluation)
    calls = [own_share(evaluation, side, drawn) for _ in range(CALLS)]
    call_s = statistics.median([clock.warm_up(evaluation, side, drawn, 0) for _ in range(CALLS)])
    evaluation.forget(drawn)
    share = min(statistics.median([call.seconds for call in calls]) / call_s, 1.0)
    saved = None
    if knocked_out.call_s is not None:
        saved = min(max(1 - knocked_out.call_s / call_s, 0.0), 1.0)
    return Profile(
        case=case.name,
        launches=calls[-1].launches,
        own_share=share,
        saved_share=saved,
        coverage=share if saved is None else min(share, saved),
    )
