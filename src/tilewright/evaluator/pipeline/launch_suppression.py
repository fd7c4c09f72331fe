"""Stages trace, profile and launch_suppression: the kernels of a call, and whether they matter.

If a candidate's output is right while its own launches do nothing, its kernels are unused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tilewright.evaluator.judge_client.client import InputSampleInfo
from tilewright.evaluator.pipeline.session import EvaluationSession
from tilewright.evaluator.runners.cpu_runner import Runner
from tilewright.evaluator.runners.gpu_runner import GpuRunner
from tilewright.evaluator.runners.messages import EvaluationEnded
from tilewright.evaluator.timing.blocks import clock_of
from tilewright.evaluator.timing.gpu_clock import profiled_call
from tilewright.records import Case, KernelShape, Profile
from tilewright.records.codes import Stage
from tilewright.scoring import bootstrap
from tilewright.wire.names import COPIED_INPUT

SUPPRESSED = "candidate-suppressed"
"""Name of the runner whose launches do nothing from the start."""
LANGUAGES = ("triton", "cpp", "cuda")
"""Languages whose candidates launch kernels of their own."""
PROFILED_CALLS = 5
"""Calls whose median is a profile's figure: the noise of a share is far below what it decides."""
SUPPRESSED_SAMPLES = 3
"""Input samples on which an output must be right without launches: a small one can be by chance."""


def trace_kernels(session: EvaluationSession) -> None:
    """List the kernels of one call by the candidate's own profiler, if asked for; none on a CPU."""
    if not session.request.trace:
        return
    with session.stage(Stage.TRACE):
        runner = session.runners.runners["candidate"]
        if not isinstance(runner, GpuRunner):
            return
        runner.profiled, runner.stage = True, Stage.TRACE
        sample = session.judge.sample(session.request.problem.cases[-1], "nominal", 52)
        session.runners.reserve_inputs(runner, sample.slot_bytes)
        session.runners.publish(runner, sample, 0)
        # The first use of the profiler takes seconds.
        timeout_s = session.request.limits.load_s
        session.observations.kernels += runner.traced(sample.call_fields(0), timeout_s)
        session.judge.forget(sample)


@dataclass(frozen=True)
class SuppressedRun:
    """A candidate without its own launches."""

    right: bool | None
    """Whether its outputs are right all the same; `None`: that is not known, so they count as
    wrong. It did not finish, or its outputs have no elements or do not depend on the inputs."""
    call_s: float | None = None
    """Seconds that its call takes on a device then."""


def measure_own_work(session: EvaluationSession) -> None:
    """Find out whether the candidate's own launches matter, and on a GPU how much.

    Launches are suppressed in a fresh process, or in the candidate's own process, which ends next
    (`_may_end_suppressed`). If the output is right in the latter, a fresh process decides. For
    example, a CUDA graph that was captured before holds launches that are not suppressed.
    """
    request = session.request
    if request.candidate.language not in LANGUAGES and not request.rules.require_custom_kernel:
        return
    case, runner = request.problem.cases[-1], session.runners.runners["candidate"]
    with session.stage(Stage.PROFILE):
        own = _profile_own_kernels(session, runner, case) if isinstance(runner, GpuRunner) else None
    with session.stage(Stage.LAUNCH_SUPPRESSION):
        found = None
        launched = _has_counted_launches(session)
        if launched and _may_end_suppressed(session):
            found = _suppress_in_place(session)
        if found is None or found.right is not False:
            found = _suppress_in_fresh_process(session, fail=not launched)
    session.observations.right_when_suppressed = found.right
    if own is not None and not found.right:
        session.observations.profile = _with_suppressed_share(*own, found.call_s)


def _has_counted_launches(session: EvaluationSession) -> bool:
    """Tell whether a launch was counted in any call, as the candidate's runner reports it."""
    seen = session.observations
    counts = [*seen.correctness.launches, *(n for case in seen.times for n in case.launches)]
    return max(counts, default=0) > 0


def _profile_own_kernels(
    session: EvaluationSession, runner: GpuRunner, case: Case
) -> tuple[Profile, float]:
    """Return the share of own kernels by the runner's own events, and a call's seconds without."""
    pool, sample = session.runners, session.judge.sample(case, "nominal", 51)
    runner.stage = Stage.PROFILE
    pool.reserve_inputs(runner, sample.slot_bytes)
    calls = [profiled_call(pool, runner, sample) for _ in range(PROFILED_CALLS)]
    call_s = _median_call_s(session, runner, sample)
    session.judge.forget(sample)
    own_s = bootstrap.median([(call.own_us or 0.0) / 1e6 for call in calls])
    share = min(own_s / call_s, 1.0)
    profile = Profile(
        case=case.name,
        launches=calls[-1].launches,
        self_reported_share=share,
        suppressed_share=None,
        coverage=share,
        shapes=tuple(KernelShape(**item.model_dump()) for item in calls[-1].shapes),
    )
    return profile, call_s


def _median_call_s(session: EvaluationSession, runner: Runner, sample: InputSampleInfo) -> float:
    clock = clock_of(session.host.device)
    calls = [clock.warm_up(session.runners, runner, sample, 0) for _ in range(PROFILED_CALLS)]
    return bootstrap.median(calls)


def _may_end_suppressed(session: EvaluationSession) -> bool:
    """Tell whether launches may be suppressed in the candidate's own process, to save another."""
    # On a GPU one more process takes as long as all calls. Native code that reads what its launches
    # did not write may corrupt its memory, and its end would be attributed to the candidate.
    return session.on_gpu and session.request.candidate.language == "triton"


def _suppress_in_place(session: EvaluationSession) -> SuppressedRun:
    """Suppress launches in the candidate's own process, which ends next."""
    pool = session.runners
    runner = pool.runners["candidate"]
    runner.stage = Stage.LAUNCH_SUPPRESSION
    try:
        runner.suppress_launches()
        return _judged(session, runner)
    except EvaluationEnded:
        # The end of this process is no evidence any more.
        pool.stop("candidate")
        return SuppressedRun(False)


def _suppress_in_fresh_process(session: EvaluationSession, *, fail: bool) -> SuppressedRun:
    """Judge a process whose own launches did nothing from the start.

    With `fail` they raise. A candidate without a counted launch may try a kernel that cannot run,
    and let other code do the work when it raises.
    """
    pool, candidate = session.runners, session.request.candidate
    suppression = {"suppressed": True, "launches_fail": fail}
    try:
        runner = pool.start(SUPPRESSED, candidate, build="candidate", suppression=suppression)
        runner.stage = Stage.LAUNCH_SUPPRESSION
        pool.match_and_publish(SUPPRESSED)
        return _judged(session, runner)
    except EvaluationEnded:
        return SuppressedRun(None)
    finally:
        if SUPPRESSED in pool.runners:
            pool.runners[SUPPRESSED].child.kill_async()


def _judged(session: EvaluationSession, runner: Runner) -> SuppressedRun:
    """Compare calls on new inputs, and time such calls on a GPU if the output is wrong.

    An output proves something only if it has elements, and if it is wrong for other inputs. It
    proves nothing where an argument as it was is right, for example if the work is in place.
    """
    for case in reversed(session.request.problem.cases):
        if case.name in _right_without_work(session):
            continue
        samples = list[InputSampleInfo]()
        try:
            found = _judged_on_case(session, runner, case, samples)
        finally:
            if session.judge.running:
                for sample in samples:
                    session.judge.forget(sample)
        if found.right is not None:
            return found
    return SuppressedRun(None)


def _right_without_work(session: EvaluationSession) -> set[str]:
    health = session.problem_health
    return {
        case.case
        for case in (health.cases if health else ())
        if COPIED_INPUT in (*case.passing, *case.passing_own_inputs)
    }


def _judged_on_case(
    session: EvaluationSession, runner: Runner, case: Case, samples: list[InputSampleInfo]
) -> SuppressedRun:
    pool, differ = session.runners, False
    for number in range(SUPPRESSED_SAMPLES):
        samples.append(session.judge.sample(case, "nominal", 60 + number))
        sample = samples[-1]
        if not any(math.prod(item["shape"]) for item in sample.layout.outputs):
            return SuppressedRun(None)
        made = pool.call(runner, sample, 0)
        if made.answer.wrong:
            timed = session.on_gpu
            return SuppressedRun(False, _median_call_s(session, runner, sample) if timed else None)
        if number:
            differ = differ or bool(pool.compare(runner, samples[-2], made.result).wrong)
    return SuppressedRun(right=True if differ else None)


def _with_suppressed_share(
    profile: Profile, call_s: float, suppressed_call_s: float | None
) -> Profile:
    """Return the profile with the share of a call's time that disappears under suppression.

    Coverage is the smaller of two shares. The first lies between events around the candidate's
    own launches, as its runner reports it. The second disappears under suppression, by the judge's
    clock. Both are shares of calls without such events, whose own time would count as other work.
    If the runner counts no launch, the counter cannot see how it launches: the second share counts.
    """
    if suppressed_call_s is None:
        return profile
    saved = min(max(1 - suppressed_call_s / call_s, 0.0), 1.0)
    coverage = min(profile.coverage, saved) if profile.launches else saved
    return profile.model_copy(update={"suppressed_share": saved, "coverage": coverage})
