"""The pipeline: one request in, one report out. Each stage may end it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack

from tilewright.errors import InfrastructureError
from tilewright.evaluator.devices.environment import device_key
from tilewright.evaluator.judge_client.official_tolerances import rule_of
from tilewright.evaluator.judge_client.weights import apply_weights, load_weights, match_weights
from tilewright.evaluator.pipeline import correctness
from tilewright.evaluator.pipeline.ceilings import measure_ceilings
from tilewright.evaluator.pipeline.gpu_checks import (
    labels_of,
    look_at_device,
    look_for_disturbance,
    probe,
    refuse_quarantined,
    size_blocks,
)
from tilewright.evaluator.pipeline.launch_suppression import SUPPRESSED, look_at_own_work, trace
from tilewright.evaluator.pipeline.precompile import begin_compilers, keep_call_shapes, precompile
from tilewright.evaluator.pipeline.prepare import prepare
from tilewright.evaluator.pipeline.session import COMPILE_MODES, Emit, EvaluationSession
from tilewright.evaluator.processes.host import DeviceHost
from tilewright.evaluator.runners.baselines import (
    attribute_to_baseline,
    baseline_failed,
    cache_baselines,
    open_baselines,
    restart_runner,
    stop_or_cache,
)
from tilewright.evaluator.runners.cpu_runner import Runner
from tilewright.evaluator.runners.ended import EvaluationEnded
from tilewright.evaluator.runners.idle import IdleJudge
from tilewright.evaluator.seeds import random_root
from tilewright.evaluator.timing import blocks
from tilewright.evaluator.timing.calibration import read_calibration
from tilewright.evaluator.verdict import Observations, report
from tilewright.records import (
    Correct,
    EvalReport,
    EvalRequest,
    Failed,
    Incorrect,
    Label,
    Outcome,
    Rejected,
)

__all__ = ["evaluate", "open_judge"]

ATTEMPTS = 2
"""How often an evaluation is made when our own side fails in it; once more for a doubt."""
BY_THE_CLOCK = {"untimed_work", "baseline_interference"}
"""Findings that rest on times and on nothing else."""


def evaluate(
    host: DeviceHost,
    request: EvalRequest,
    emit: Emit,
    watch: Callable[[], None],
    *,
    checks: tuple[str, ...] | None = None,
) -> EvalReport:
    """Judge one candidate.

    Raises:
        ProblemError: the problem cannot be used.
        InfrastructureError: our side failed twice.
    """
    host.reap()
    root = request.seed or random_root()
    failures, repeated = 0, False
    while True:
        session = EvaluationSession(host, request, root, emit, watch)
        try:
            found = evaluate_once(session, checks)
        except InfrastructureError as error:
            failures += 1
            if failures == ATTEMPTS:
                raise
            if host.device.is_gpu:
                # It may have been room on the device that was missing.
                host.end_idle()
            emit("retry", {"because": str(error)})
            continue
        doubt = "" if repeated else reason_to_repeat(found, host)
        if not doubt:
            return found
        repeated = True
        emit("retry", {"because": doubt})


def reason_to_repeat(found: EvalReport, host: DeviceHost) -> str:
    """Say why a verdict may be our doing and is to be made once more; empty: it may not.

    A candidate may lack device memory that idle processes of ours held, which are ended here. And
    what accuses it by the clock alone is a busy machine now and then.
    """
    outcome = found.outcome
    if isinstance(outcome, Failed) and outcome.reason == "out_of_memory":
        crowded = host.device.is_gpu and host.end_idle()
        return "it ran out of memory beside processes that idle" if crowded else ""
    if isinstance(outcome, Rejected):
        codes = {finding.code for finding in outcome.findings}
        return "what the clock alone says is looked at twice" if codes <= BY_THE_CLOCK else ""
    return ""


def evaluate_once(session: EvaluationSession, checks: tuple[str, ...] | None) -> EvalReport:
    observations, host = Observations(), session.host
    refuse_quarantined(host)
    key = device_key(host.cores, host.device)
    session.calibration = read_calibration(host.home, key, on_gpu=host.device.is_gpu)
    started = time.monotonic()
    session.deadline = started + session.request.limits.total_timeout_s
    # The lease is held until nothing of a candidate is alive.
    with ExitStack() as leased:
        try:
            outcome = _ended(session, observations, leased)
            host.suspect |= isinstance(outcome, Failed) and host.device.is_gpu
            with session.stage("cleanup"):
                if not host.suspect:
                    cache_baselines(session)
                _close(session)
        except BaseException:
            _abandon(session)
            raise
    session.record_overhead(time.monotonic() - started)
    return report(session, observations, outcome, session.calibration, checks=checks)


def _ended(session: EvaluationSession, observations: Observations, leased: ExitStack) -> Outcome:
    """Go through the stages until one of them ends the evaluation."""
    try:
        outcome = run_stages(session, observations, leased)
    except EvaluationEnded as ended:
        outcome = ended.outcome
    if isinstance(outcome, Incorrect) and session.has_weights and not observations.times:
        observations.passes_with_initial_weights = passes_with_initial_weights(session)
        if observations.passes_with_initial_weights:
            return outcome.model_copy(update={"kind": "weights"})
    return outcome


def run_stages(
    session: EvaluationSession, observations: Observations, leased: ExitStack
) -> Outcome:
    request = session.request
    others = {item.name: item.candidate for item in request.baselines if item.candidate}
    begin_compilers(session)
    with session.stage("build"):
        prepare(session, "candidate", request.candidate)
        for name, candidate in others.items():
            with attribute_to_baseline(session, name):
                prepare(session, name, candidate)
    _precompile_all(session)
    with session.stage("device_wait"):
        _take_device(session, observations, leased)
    with session.stage("start_judge"):
        open_judge(session)
    with session.stage("load"):
        session.start_runner("candidate", request.candidate)
        if request.protocol == "strict":
            observations.lacking_weights = load_weights(session, ["candidate"])
    with session.stage("correctness"):
        runner = session.runners["candidate"]
        correctness.judge_correctness(session, runner, observations.seen)
        runner.judged = True
        keep_call_shapes(session, observations.seen.calls)
        if request.protocol == "official" and session.is_module:
            label_constant_folding(session, observations)
    if request.trace:
        with session.stage("trace"):
            observations.kernels = trace(session, request.problem.cases[-1])
    if _may_time(session, observations):
        with session.stage("timing"):
            _time(session, observations)
            session.record_conditions("after timing")
    if request.candidate.language in ("triton", "cpp", "cuda"):
        look_at_own_work(session, observations)
    with session.stage("shutdown"):
        _exit(session, observations)
    return Correct()


def _precompile_all(session: EvaluationSession) -> None:
    precompile(session, "candidate", session.request.candidate)
    for item in session.request.baselines:
        if item.candidate:
            with attribute_to_baseline(session, item.name):
                precompile(session, item.name, item.candidate)


def _take_device(session: EvaluationSession, observations: Observations, leased: ExitStack) -> None:
    """Wait until it is our turn on the device; that time is not counted as ours."""
    asked = time.monotonic()

    def waiting(text: str) -> None:
        session.emit("waiting", {"message": text})

    leased.enter_context(session.host.lease(waiting, session.watch))
    session.waited_s = time.monotonic() - asked
    session.deadline += session.waited_s
    look_at_device(session, observations)


def _may_time(session: EvaluationSession, observations: Observations) -> bool:
    request = session.request
    if not request.timing.enabled or not request.baselines:
        return False
    reason = ""
    if request.candidate.language == "triton" and not session.host.device.is_gpu:
        reason = "Triton runs in its interpreter here: correctness and checks, no claim about time"
    elif not session.host.cores.separate:
        reason = "one core only: the clock would share it with what it times"
    elif observations.seen.mutated and request.protocol == "strict":
        reason = "rejected before timing"
    if reason:
        observations.labels.append(Label(name="not_timed", detail=reason))
    return not reason


def open_judge(session: EvaluationSession) -> None:
    """Start the judge, or take the warm one of the same problem, and load the problem."""
    request, host = session.request, session.host
    problem = request.problem
    warm = host.take_idle_judge(_idle_key(session))
    if warm is None:
        warm = _new_judge(session)
        if measure_ceilings(session):
            warm.kill()
            warm = _new_judge(session)
    session.judge, session.cached = warm.judge, warm.cached
    fields = {
        "problem_kind": problem.kind,
        "mode": problem.mode,
        "grads": list(problem.grads),
        "donates": list(problem.writable_inputs),
        "keywords": list(problem.keyword_args),
        "init_seed": session.seed("init") & 0x7FFFFFFF,
        "threads": 1,
        "rule": rule_of(problem, request.protocol),
        "tf32": request.allows_tf32,
    }
    answer = session.ask("problem", fields, body=problem.source.text.encode())
    session.init_tree, session.init_bytes = answer["init"], answer["init_bytes"]
    session.is_module = answer["module"]
    session.has_weights = answer["module"] and request.protocol == "strict"
    if host.device.is_gpu:
        if host.suspect:
            probe(session)
        size_blocks(session)


def _new_judge(session: EvaluationSession) -> IdleJudge:
    warm = IdleJudge(session.host.spawn("judge", session.request.limits))
    warm.judge.wait_ready()
    session.judge = warm.judge
    return warm


def _idle_key(session: EvaluationSession) -> str:
    request = session.request
    parts = (request.problem.digest(), request.protocol, request.rules.precision)
    # The baselines that are kept with it have as many queues as the candidate.
    queues = ("several streams",) * (session.host.device.is_gpu and session.several_streams)
    return "|".join((*parts, *queues, request.limits.to_json()))


def _time(session: EvaluationSession, observations: Observations) -> None:
    names = [baseline.name for baseline in session.request.baselines]
    official = session.request.protocol == "official"

    def reopen(*, fresh: bool) -> None:
        # Of a new problem the shapes are known by now, and each process would compile again.
        _precompile_all(session)
        # To compile a baseline again would take longer than all the rest: it stays.
        staying = COMPILE_MODES if fresh else ()
        leaving = {*names, "candidate"}.intersection(session.runners).difference(staying)
        stop_or_cache(session, sorted(leaving), keep=not fresh)
        open_baselines(session, fresh=fresh)
        restart_runner(session, "candidate", session.request.candidate)

    open_baselines(session)
    for case in session.request.problem.cases:
        session.emit("timing", {"case": case.name})
        try:
            runners = [*names, "candidate"]
            if official:
                times = blocks.time_case_official(session, case, runners)
            else:
                times = blocks.time_case(session, case, runners, reopen)
            observations.times.append(times)
        except EvaluationEnded as ended:
            if ended.runner in names:
                raise baseline_failed(session, ended.runner, ended) from ended
            raise
        observations.labels += labels_of(observations.times[-1])
        if observations.times[-1].wrong:
            message, name = observations.times[-1].wrong[0], f"{case.name}, timed"
            raise EvaluationEnded(Incorrect(kind="values", case=name, message=message))


def _exit(session: EvaluationSession, observations: Observations) -> None:
    """Let the candidate's process end; death by a signal there is memory corruption."""
    runner: Runner | None = session.runners.get("candidate")
    status: int | None = 0
    if runner is not None:
        runner.stage = "shutdown"
        status = runner.end(session.request.limits.exit_s)
    if session.host.device.is_gpu and observations.times:
        if runner is not None:
            session.record_output("candidate")
        for name in ("candidate", SUPPRESSED):
            session.stop_runner(name)
        baseline = session.request.baselines[0].name
        with attribute_to_baseline(session, baseline):
            look_for_disturbance(session, observations)
    if runner is None:
        lost = "its process was lost when it was called without its own launches"
        observations.labels.append(Label(name="exit_unverified", detail=lost))
    if status is None:
        detail = f"its process did not end within {session.request.limits.exit_s:g} s"
        observations.labels.append(Label(name="exit_timeout", detail=detail))
    elif os.WIFSIGNALED(status):
        message = f"its process died of signal {os.WTERMSIG(status)} while it ended"
        raise EvaluationEnded(Failed(stage="shutdown", reason="memory_corruption", message=message))


def passes_with_initial_weights(session: EvaluationSession) -> bool | None:
    """Judge once more in a fresh contestant, with the weights of the init seed on both sides."""
    session.ask("reset_weights", {})
    return passes_in_fresh_runner(session, resampled=False)


def label_constant_folding(session: EvaluationSession, observations: Observations) -> None:
    """Label what the published rules let pass: weights that no longer matter once loaded."""
    right = passes_in_fresh_runner(session, resampled=True)
    session.ask("reset_weights", {})
    if right is False:
        detail = "wrong once other weights are loaded; the published rules never load any"
        observations.labels.append(Label(name="weights_constant_folded", detail=detail))


def passes_in_fresh_runner(session: EvaluationSession, *, resampled: bool) -> bool | None:
    """Judge one nominal draw in a contestant of its own; `None` when it does not finish."""
    name = "candidate-again"
    session.artifacts[name] = session.artifacts.get("candidate", {})
    session.loaders[name] = session.loaders["candidate"]
    try:
        runner = session.start_runner(name, session.request.candidate)
        if resampled:
            match_weights(session, name)
            apply_weights(session, [name])
        runner.stage = "correctness"
        sample = session.sample(session.request.problem.cases[0], "nominal", 0)
        result = session.call(runner, sample, 0)
        return not session.check(runner, sample, 0, result).wrong
    except EvaluationEnded:
        return None
    finally:
        session.stop_runner(name)


def _close(session: EvaluationSession) -> None:
    """End every side; keep the judge warm for the next candidate of its problem."""
    host, names = session.host, list(session.runners)
    for name in names:
        session.record_output(name)
        host.retire(session.runners.pop(name))
    # After a failure nobody knows what is left on the device: then no one is kept.
    cached = session.cached.drain() if host.suspect else session.cached.rest()
    for runner in cached:
        names.append(runner.name)
        host.retire(runner)
    if host.device.is_gpu:
        # What they have mapped must not be freed before they are gone.
        host.reap()
    if session.judge is not None:
        session.ask("forget", {"all": True, "runners": names})
        session.host.keep_idle_judge(_idle_key(session), IdleJudge(session.judge, session.cached))
        session.judge = None


def _abandon(session: EvaluationSession) -> None:
    """End everything at once; nothing of it is used again."""
    for runner in session.runners.values():
        runner.close()
    session.runners.clear()
    session.cached.close()
    if session.judge is not None:
        session.judge.kill()
        session.judge = None
