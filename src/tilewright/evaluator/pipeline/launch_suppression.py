"""Knock-out: a contestant whose own launches do nothing. Still right means decoy."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.evaluator.judge_client.weights import match_weights, publish_weights
from tilewright.evaluator.pipeline.session import EvaluationSession
from tilewright.evaluator.runners.cpu_runner import Runner
from tilewright.evaluator.runners.ended import EvaluationEnded
from tilewright.evaluator.runners.gpu_runner import GpuRunner
from tilewright.evaluator.timing.cpu_clock import clock_of
from tilewright.evaluator.timing.gpu_clock import measure_own_kernel_time
from tilewright.evaluator.verdict import Observations
from tilewright.records import Case, KernelTime, Profile
from tilewright.scoring import bootstrap

__all__ = ["SUPPRESSED", "look_at_own_work", "trace"]

SUPPRESSED = "candidate-knockout"
"""Its side."""
CALLS = 5


@dataclass(frozen=True)
class SuppressedRun:
    """A candidate without its own launches."""

    right: bool | None
    """Whether its outputs are right all the same; `None`: it did not finish, so it is no decoy."""
    call_s: float | None = None
    """What its call then takes on a device."""


@dataclass(frozen=True)
class OwnCalls:
    """A candidate's calls on a device, with and without events around its own launches."""

    share: float
    """Share of the call's time between the events around its own launches."""
    launches: int
    call_s: float
    """Device time of a call without events, in seconds."""


def look_at_own_work(session: EvaluationSession, observations: Observations) -> None:
    """Find out whether the candidate's own launches matter, and on a device how much.

    A fresh process is knocked out, or its own, which ends next (`_may_end_suppressed`). Who is
    right all the same in that one gets a fresh one too: a graph that it captured before, say,
    holds launches that nobody suppresses.

    Raises:
        Ended: it failed with its launches.
    """
    case = session.request.problem.cases[-1]
    with session.stage("profile"):
        own = _own_calls(session, case)
    with session.stage("launch_suppression"):
        found = None
        if _may_end_suppressed(session):
            found = _suppressed_here(session, case)
        if found is None or found.right:
            found = _suppressed_afresh(session, case)
    observations.right_when_suppressed = found.right
    if own is not None and not found.right:
        observations.profile = _profile(case, own, found)


def _may_end_suppressed(session: EvaluationSession) -> bool:
    """Tell whether the candidate's process may be knocked out before it ends, to save another.

    On a GPU, where one more takes as long as all calls, and in Triton: native code that meets what
    its launches did not write may corrupt its memory, and would be blamed for how it ends.
    """
    return session.host.device.is_gpu and session.request.candidate.language == "triton"


def _suppressed_here(session: EvaluationSession, case: Case) -> SuppressedRun:
    runner = session.runners["candidate"]
    runner.stage = "launch_suppression"
    try:
        runner.suppress_launches()
        return _without_launches(session, runner, case)
    except EvaluationEnded:
        # How it ends after that says nothing of it.
        session.record_output("candidate")
        session.stop_runner("candidate")
        return SuppressedRun(None)


def _suppressed_afresh(session: EvaluationSession, case: Case) -> SuppressedRun:
    try:
        runner = session.start_runner(SUPPRESSED, session.request.candidate, suppressed=True)
        runner.stage = "launch_suppression"
        if session.has_weights:
            match_weights(session, SUPPRESSED)
            publish_weights(session, SUPPRESSED)
        return _without_launches(session, runner, case)
    except EvaluationEnded:
        return SuppressedRun(None)
    finally:
        if SUPPRESSED in session.runners:
            session.runners[SUPPRESSED].child.kill_async()


def _without_launches(session: EvaluationSession, runner: Runner, case: Case) -> SuppressedRun:
    """Compare a call on inputs that it never had, and time such calls where it was wrong."""
    sample = session.sample(case, "nominal", 50)
    result = session.call(runner, sample, 0)
    right = not session.check(runner, sample, 0, result).wrong
    call_s = None
    if isinstance(runner, GpuRunner) and not right:
        clock = clock_of(session)
        calls = [clock.warm_up(session, runner, sample, 0) for _ in range(CALLS)]
        call_s = bootstrap.median(calls)
    session.forget(sample)
    return SuppressedRun(right, call_s)


def trace(session: EvaluationSession, case: Case) -> list[KernelTime]:
    """Return the kernels of one call of the candidate, by its own profiler; none on a CPU.

    Raises:
        Ended: it failed.
    """
    runner = session.runners["candidate"]
    if not isinstance(runner, GpuRunner):
        return []
    runner.profiled = True
    sample = session.sample(case, "nominal", 52)
    session.reserve_inputs(runner, sample.slot_bytes)
    session.publish(runner, sample, 0)
    # The profiler's first use takes seconds.
    found = runner.traced(session.fields_of(sample, 0), session.request.limits.load_s)
    session.forget(sample)
    return found


def _own_calls(session: EvaluationSession, case: Case) -> OwnCalls | None:
    """Call with and without events around own launches; `None` on a CPU.

    Raises:
        Ended: it failed.
    """
    runner = session.runners["candidate"]
    if not isinstance(runner, GpuRunner):
        return None
    sample = session.sample(case, "nominal", 51)
    session.reserve_inputs(runner, sample.slot_bytes)
    clock = clock_of(session)
    calls = [measure_own_kernel_time(session, runner, sample) for _ in range(CALLS)]
    call_s = bootstrap.median([clock.warm_up(session, runner, sample, 0) for _ in range(CALLS)])
    session.forget(sample)
    share = min(bootstrap.median([call.seconds for call in calls]) / call_s, 1.0)
    return OwnCalls(share, calls[-1].launches, call_s)


def _profile(case: Case, own: OwnCalls, run_suppressed: SuppressedRun) -> Profile:
    """Return how much of the candidate's device time its own kernels are.

    The smaller of two figures: the share between events around its own launches, which is its own
    word, and what is saved when these are left out, which is the judge's. Both are held against
    calls without such events, whose own time would count as somebody else's work.
    """
    saved = None
    if run_suppressed.call_s is not None:
        saved = min(max(1 - run_suppressed.call_s / own.call_s, 0.0), 1.0)
    return Profile(
        case=case.name,
        launches=own.launches,
        self_reported_share=own.share,
        suppressed_share=saved,
        coverage=own.share if saved is None else min(own.share, saved),
    )
