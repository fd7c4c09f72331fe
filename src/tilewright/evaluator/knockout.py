"""Knock-out: a contestant whose own launches do nothing. Still right means decoy."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.evaluator.clocks import clock_of
from tilewright.evaluator.device_clock import own_share
from tilewright.evaluator.device_side import DeviceSide
from tilewright.evaluator.evaluation import Evaluation
from tilewright.evaluator.sides import Ended, Side
from tilewright.evaluator.verdict import Collected
from tilewright.evaluator.weights import match_weights, publish_weights
from tilewright.records import Case, KernelTime, Profile
from tilewright.scoring import statistics

__all__ = ["KNOCKED_OUT", "look_at_own_work", "trace"]

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


@dataclass(frozen=True)
class OwnCalls:
    """A candidate's calls on a device, with and without events around its own launches."""

    share: float
    """Of the call's time, between those events."""
    launches: int
    call_s: float
    """Of a call without events."""


def look_at_own_work(evaluation: Evaluation, collected: Collected) -> None:
    """Find out whether the candidate's own launches matter, and on a device how much.

    A fresh process is knocked out, or its own, which ends next (`_may_end_knocked_out`). Who is
    right all the same in that one gets a fresh one too: a graph that it captured before, say,
    holds launches that nobody suppresses.

    Raises:
        Ended: it failed with its launches.
    """
    case = evaluation.request.problem.cases[-1]
    with evaluation.stage("profile"):
        own = _own_calls(evaluation, case)
    with evaluation.stage("knockout"):
        found = None
        if _may_end_knocked_out(evaluation):
            found = _knocked_out_here(evaluation, case)
        if found is None or found.right:
            found = _knocked_out_afresh(evaluation, case)
    collected.right_when_knocked_out = found.right
    if own is not None and not found.right:
        collected.profile = _profile(case, own, found)


def _may_end_knocked_out(evaluation: Evaluation) -> bool:
    """Tell whether the candidate's process may be knocked out before it ends, to save another.

    On a GPU, where one more takes as long as all calls, and in Triton: native code that meets what
    its launches did not write may corrupt its memory, and would be blamed for how it ends.
    """
    return evaluation.host.device.is_gpu and evaluation.request.candidate.language == "triton"


def _knocked_out_here(evaluation: Evaluation, case: Case) -> KnockedOut:
    side = evaluation.sides["candidate"]
    side.stage = "knockout"
    try:
        side.knock_out()
        return _without_launches(evaluation, side, case)
    except Ended:
        # How it ends after that says nothing of it.
        evaluation.note_printed("candidate")
        evaluation.close_side("candidate")
        return KnockedOut(None)


def _knocked_out_afresh(evaluation: Evaluation, case: Case) -> KnockedOut:
    try:
        side = evaluation.open_side(KNOCKED_OUT, evaluation.request.candidate, knockout=True)
        side.stage = "knockout"
        if evaluation.has_weights:
            match_weights(evaluation, KNOCKED_OUT)
            publish_weights(evaluation, KNOCKED_OUT)
        return _without_launches(evaluation, side, case)
    except Ended:
        return KnockedOut(None)
    finally:
        if KNOCKED_OUT in evaluation.sides:
            evaluation.sides[KNOCKED_OUT].child.doom()


def _without_launches(evaluation: Evaluation, side: Side, case: Case) -> KnockedOut:
    """Compare a call on inputs that it never had, and time such calls where it was wrong."""
    drawn = evaluation.draw(case, "nominal", 50)
    result = evaluation.call(side, drawn, 0)
    right = not evaluation.check(side, drawn, 0, result).wrong
    call_s = None
    if isinstance(side, DeviceSide) and not right:
        clock = clock_of(evaluation)
        calls = [clock.warm_up(evaluation, side, drawn, 0) for _ in range(CALLS)]
        call_s = statistics.median(calls)
    evaluation.forget(drawn)
    return KnockedOut(right, call_s)


def trace(evaluation: Evaluation, case: Case) -> list[KernelTime]:
    """Return the kernels of one call of the candidate, by its own profiler; none on a CPU.

    Raises:
        Ended: it failed.
    """
    side = evaluation.sides["candidate"]
    if not isinstance(side, DeviceSide):
        return []
    side.profiled = True
    drawn = evaluation.draw(case, "nominal", 52)
    evaluation.make_room(side, drawn.slot_bytes)
    evaluation.publish(side, drawn, 0)
    # The profiler's first use takes seconds.
    found = side.traced(evaluation.fields_of(drawn, 0), evaluation.request.limits.load_s)
    evaluation.forget(drawn)
    return found


def _own_calls(evaluation: Evaluation, case: Case) -> OwnCalls | None:
    """Call with and without events around own launches; `None` on a CPU.

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
    return OwnCalls(share, calls[-1].launches, call_s)


def _profile(case: Case, own: OwnCalls, knocked_out: KnockedOut) -> Profile:
    """Return how much of the candidate's device time its own kernels are.

    The smaller of two figures: the share between events around its own launches, which is its own
    word, and what is saved when these are left out, which is the judge's. Both are held against
    calls without such events, whose own time would count as somebody else's work.
    """
    saved = None
    if knocked_out.call_s is not None:
        saved = min(max(1 - knocked_out.call_s / own.call_s, 0.0), 1.0)
    return Profile(
        case=case.name,
        launches=own.launches,
        own_share=own.share,
        saved_share=saved,
        coverage=own.share if saved is None else min(own.share, saved),
    )
