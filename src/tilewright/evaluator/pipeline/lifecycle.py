"""The processes of an evaluation: the lease, the judge, and start and end of the candidate."""

from __future__ import annotations

import os

from tilewright.evaluator.devices.devices import FEW_QUEUES
from tilewright.evaluator.judge_client.client import comparison_rule
from tilewright.evaluator.judge_client.messages import LoadProblem
from tilewright.evaluator.pipeline.gpu_checks import (
    check_interference,
    probe,
    size_memory,
)
from tilewright.evaluator.pipeline.launch_suppression import SUPPRESSED
from tilewright.evaluator.pipeline.memory_admission import admit, admit_estimated
from tilewright.evaluator.pipeline.problem_check import check_problem
from tilewright.evaluator.pipeline.session import EvaluationSession
from tilewright.evaluator.runners.baselines import attribute_to_baseline
from tilewright.evaluator.runners.messages import EvaluationEnded
from tilewright.records.codes import FailureReason, LabelName, Stage

MAX_EXIT_S = 2.0
"""Most seconds that a process gets to end by itself. A count of the memory of many processes and
the kill follow. So a process that hangs holds a worker for at most three seconds, whatever the
settings say."""


def acquire_device(session: EvaluationSession) -> None:
    """Wait for the exclusive use of the device, and on a GPU for the memory that it needs."""
    with session.stage(Stage.DEVICE_WAIT) as details:
        session.take_lease()
        admit(session, details)


def start_judge(session: EvaluationSession) -> None:
    """Take the prepared judge or an idle one, or start one; have a new problem checked."""
    with session.stage(Stage.START_JUDGE):
        session.host.prepared = None
        if session.judge.running:
            admit_estimated(session)
        else:
            connect_judge(session)
    check_problem(session)


def connect_judge(session: EvaluationSession) -> None:
    """Connect the session to a judge that has loaded the problem, and make room for its calls."""
    session.judge.disconnect()
    load_problem(session)
    if session.on_gpu:
        if session.host.suspect:
            probe(session)
        size_memory(session)
        admit_estimated(session)


def load_problem(session: EvaluationSession) -> None:
    """Connect the session to an idle judge or a new one, which loads the problem."""
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
            tf32=session.runners.tf32,
            compares_overwritten=problem.compares_overwritten,
            buffers=list(problem.buffers),
            file=problem.source.path,
        )
    )


def load_candidate(session: EvaluationSession) -> None:
    """Start the candidate's runner, and load new weights under the protocol `strict`.

    Under `official` it loads the buffers that the problem declares, with their initial values.
    """
    with session.stage(Stage.LOAD):
        if session.on_gpu:
            queues = None if session.context.several_streams else FEW_QUEUES
            session.observations.conditions["runners"] = {"queues": queues}
        session.runners.start("candidate", session.request.candidate)
        if session.runners.has_weights:
            session.observations.lacking_weights = session.runners.load_weights("candidate")
        elif session.runners.has_buffers:
            session.runners.load_initial_buffers("candidate")


def shut_down(session: EvaluationSession) -> None:
    """Let the candidate's process end; a death by a signal there is memory corruption."""
    with session.stage(Stage.SHUTDOWN):
        pool, exit_s = session.runners, min(session.request.limits.exit_s, MAX_EXIT_S)
        runner = pool.runners.get("candidate")
        status: int | None = 0
        if runner is not None:
            runner.stage = Stage.SHUTDOWN
            status = runner.end(exit_s)
        if session.on_gpu and session.observations.times:
            for name in ("candidate", SUPPRESSED):
                pool.stop(name)
            with attribute_to_baseline(session.context, session.request.baselines[0].name):
                check_interference(session)
        if runner is None:
            detail = "its process was lost when it was called without its own launches"
            session.add_label(LabelName.EXIT_UNVERIFIED, detail)
        if status is None:
            detail = f"its process did not end within {exit_s:g} s"
            session.add_label(LabelName.EXIT_TIMEOUT, detail)
        elif os.WIFSIGNALED(status):
            message = f"its process died of signal {os.WTERMSIG(status)} while it ended"
            raise EvaluationEnded.failed(Stage.SHUTDOWN, FailureReason.MEMORY_CORRUPTION, message)
