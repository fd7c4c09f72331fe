"""Stages device_wait, start_judge and load: the lease, the judge, and the candidate's runner."""

from __future__ import annotations

from tilewright.evaluator.devices.devices import FEW_QUEUES
from tilewright.evaluator.judge_client.messages import LoadProblem
from tilewright.evaluator.judge_client.official_tolerances import comparison_rule
from tilewright.evaluator.pipeline.gpu_checks import check_other_programs, probe, size_memory
from tilewright.evaluator.pipeline.session import EvaluationSession
from tilewright.evaluator.runners.weights import load_weights

__all__ = ["acquire_device", "load_candidate", "start_judge"]


def acquire_device(session: EvaluationSession) -> None:
    """Wait for the exclusive use of the device."""
    with session.stage("device_wait"):
        session.take_lease(lambda text: session.context.emit("waiting", {"message": text}))
        check_other_programs(session)


def start_judge(session: EvaluationSession) -> None:
    """Start a judge with the problem, or take the idle judge of the same problem.

    Raises:
        ProblemError: the problem's own code failed.
        InfrastructureError: the device does not compute correctly.
    """
    with session.stage("start_judge"):
        connect_judge(session)


def connect_judge(session: EvaluationSession) -> None:
    """Connect the session to a judge that has loaded the problem."""
    request, host, pool = session.request, session.host, session.runners
    problem = request.problem
    idle = host.take_idle_judge(session.idle_key())
    if idle is not None:
        pool.cached = idle.cached
        session.judge.child = idle.judge
    else:
        child = host.spawn("judge", request.limits)
        session.judge.child = child
        child.wait_ready()
    pool.problem = session.judge.request(
        LoadProblem(
            source=problem.source.text.encode(),
            problem_kind=problem.kind,
            mode=problem.mode,
            grads=list(problem.grads),
            writable_inputs=list(problem.writable_inputs),
            keywords=list(problem.keyword_args),
            init_seed=session.context.seed("init") & 0x7FFFFFFF,
            threads=1,
            rule=comparison_rule(problem, request.protocol),
            tf32=request.allows_tf32,
        )
    )
    if session.on_gpu:
        if host.suspect:
            probe(session)
        size_memory(session)


def load_candidate(session: EvaluationSession) -> None:
    """Start the candidate's runner, and load new weights under the protocol `strict`.

    Raises:
        EvaluationEnded: the candidate failed to load.
    """
    with session.stage("load"):
        if session.on_gpu:
            queues = None if session.context.several_streams else FEW_QUEUES
            session.observations.conditions["runners"] = {"queues": queues}
        session.runners.start("candidate", session.request.candidate)
        if session.runners.has_weights:
            session.observations.lacking_weights = load_weights(session.runners, "candidate")
