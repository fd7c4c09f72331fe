"""Stage launch_suppression: the candidate again, while its own launches do nothing.

If its output is right all the same, its kernels are unused.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.evaluator.pipeline.profiling import (
    PROFILED_CALLS,
    OwnCalls,
    profile_own_kernels,
)
from tilewright.evaluator.pipeline.session import EvaluationSession
from tilewright.evaluator.runners.cpu_runner import Runner
from tilewright.evaluator.runners.ended import EvaluationEnded
from tilewright.evaluator.runners.gpu_runner import GpuRunner
from tilewright.evaluator.runners.weights import match_and_publish
from tilewright.evaluator.timing.clocks import clock_of
from tilewright.records import Case, Profile
from tilewright.scoring import bootstrap

__all__ = ["SUPPRESSED", "measure_own_work"]

SUPPRESSED = "candidate-suppressed"
"""Name of the runner whose launches do nothing from the start."""
LANGUAGES = ("triton", "cpp", "cuda")
"""Languages whose candidates launch kernels of their own."""


@dataclass(frozen=True)
class SuppressedRun:
    """A candidate without its own launches."""

    right: bool | None
    """Whether its outputs are right all the same; `None`: it did not finish, so they are used."""
    call_s: float | None = None
    """Seconds that its call takes on a device then."""


def measure_own_work(session: EvaluationSession) -> None:
    """Find out whether the candidate's own launches matter, and on a GPU how much.

    Launches are suppressed in a fresh process, or in the candidate's own process, which ends next
    (`_may_end_suppressed`). If the output is right in the latter, a fresh process decides. For
    example, a CUDA graph that was captured before holds launches that are not suppressed.

    Raises:
        EvaluationEnded: the candidate failed with its launches.
    """
    if session.request.candidate.language not in LANGUAGES:
        return
    case = session.request.problem.cases[-1]
    with session.stage("profile"):
        own = profile_own_kernels(session, case)
    with session.stage("launch_suppression"):
        found = None
        if _may_end_suppressed(session):
            found = _suppress_in_place(session, case)
        if found is None or found.right:
            found = _suppress_in_fresh_runner(session, case)
    session.observations.right_when_suppressed = found.right
    if own is not None and not found.right:
        session.observations.profile = _profile(case, own, found)


def _may_end_suppressed(session: EvaluationSession) -> bool:
    """Tell whether launches may be suppressed in the candidate's own process, to save another.

    It is so on a GPU, where one more process takes as long as all calls, and for Triton only.
    Native code that reads what its launches did not write may corrupt its memory, and its end
    would be attributed to the candidate.
    """
    return session.on_gpu and session.request.candidate.language == "triton"


def _suppress_in_place(session: EvaluationSession, case: Case) -> SuppressedRun:
    pool = session.runners
    runner = pool.runners["candidate"]
    runner.stage = "launch_suppression"
    try:
        runner.suppress_launches()
        return _call_without_launches(session, runner, case)
    except EvaluationEnded:
        # The end of this process is no evidence any more.
        pool.record_output("candidate")
        pool.stop("candidate")
        return SuppressedRun(None)


def _suppress_in_fresh_runner(session: EvaluationSession, case: Case) -> SuppressedRun:
    pool, candidate = session.runners, session.request.candidate
    try:
        runner = pool.start(SUPPRESSED, candidate, build="candidate", suppressed=True)
        runner.stage = "launch_suppression"
        match_and_publish(pool, SUPPRESSED)
        return _call_without_launches(session, runner, case)
    except EvaluationEnded:
        return SuppressedRun(None)
    finally:
        if SUPPRESSED in pool.runners:
            pool.runners[SUPPRESSED].child.kill_async()


def _call_without_launches(session: EvaluationSession, runner: Runner, case: Case) -> SuppressedRun:
    """Compare a call on new inputs, and time such calls on a GPU if the output is wrong."""
    pool = session.runners
    sample = session.judge.sample(case, "nominal", 50)
    result = pool.call(runner, sample, 0)
    right = not pool.check(runner, sample, 0, result).wrong
    call_s = None
    if isinstance(runner, GpuRunner) and not right:
        clock = clock_of(session.host.device)
        calls = [clock.warm_up(pool, runner, sample, 0) for _ in range(PROFILED_CALLS)]
        call_s = bootstrap.median(calls)
    session.judge.forget(sample)
    return SuppressedRun(right, call_s)


def _profile(case: Case, own: OwnCalls, suppressed: SuppressedRun) -> Profile:
    """Return how much of the candidate's device time its own kernels take.

    Coverage is the smaller of two shares. The first lies between events around the candidate's
    own launches, as its runner reports it. The second disappears under suppression, by the judge's
    clock. Both are shares of calls without such events, whose own time would count as other work.
    """
    saved = None
    if suppressed.call_s is not None:
        saved = min(max(1 - suppressed.call_s / own.call_s, 0.0), 1.0)
    return Profile(
        case=case.name,
        launches=own.launches,
        self_reported_share=own.share,
        suppressed_share=saved,
        coverage=own.share if saved is None else min(own.share, saved),
    )
