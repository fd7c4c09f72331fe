"""Stage prepare_judge: on a GPU, the work before the candidate's first process, during other work.

A new problem costs seconds before its first candidate is loaded: the reference compiles, and the
problem is checked. Nothing of that is timed. So evaluations share the device for it, and only one
that loads and times its candidate has the device for itself. Between two requests to the judge
another evaluation may take the device, or have the judge ended to get its memory.
"""

from __future__ import annotations

import time

from tilewright.errors import CompilationTimeout, InfrastructureError, ProblemError
from tilewright.evaluator.judge_client.messages import Forget
from tilewright.evaluator.pipeline.gpu_checks import size_memory
from tilewright.evaluator.pipeline.lifecycle import load_problem
from tilewright.evaluator.pipeline.memory_admission import has_room
from tilewright.evaluator.pipeline.prepare import keep_call_shapes, precompile_all
from tilewright.evaluator.pipeline.problem_check import check_problem
from tilewright.evaluator.pipeline.session import EvaluationSession
from tilewright.evaluator.processes.idle import IdleJudge
from tilewright.records.codes import Stage
from tilewright.wire.frames import Fields

SHAPES_S = 20.0
"""Seconds after which no further call shape is drawn: then the candidate compiles when called."""


def prepare_judge(session: EvaluationSession) -> None:
    """Start the judge, check a new problem, and precompile its first Triton candidate.

    If the judge is lost meanwhile, the later stages start another one on a device of their own.
    """
    if not _may_prepare(session):
        return
    try:
        with session.stage(Stage.PREPARE_JUDGE):
            _start(session)
        check_problem(session, shared=True)
        with session.credited():
            _draw_call_shapes(session)
        with session.on_device():
            session.judge.request(Forget(everything=True))
    except CompilationTimeout:
        # Other evaluations do not slow a compilation down, so another attempt is no better.
        raise
    except (InfrastructureError, ProblemError) as error:
        # The device was shared: a lack of memory or time may be the others' doing.
        session.context.emit("retry", {"because": f"the judge was not prepared: {error}"})
        session.end_judge()
    precompile_all(session)


def _may_prepare(session: EvaluationSession) -> bool:
    host = session.host
    return (
        session.on_gpu
        # A device in doubt is probed first, and one that lacked memory is used alone.
        and not host.suspect
        and session.context.alone_reason is None
        and session.idle_key() not in host.idle_judges
        and has_room(session)
    )


def _start(session: EvaluationSession) -> None:
    with session.on_device():
        session.host.announce_judge()
        load_problem(session)
    _keep(session)
    size_memory(session)
    # Now its size is known.
    _keep(session)


def _keep(session: EvaluationSession) -> None:
    """Let another supervisor see what the judge holds, and have it ended."""
    if (child := session.judge.child) is not None:
        idle = IdleJudge(child, session.runners.cached, session.memory.judge_bytes)
        session.host.keep_prepared(idle)


def _draw_call_shapes(session: EvaluationSession) -> None:
    """Draw the shapes of a problem's calls, so that its first candidate can be precompiled."""
    request, known = session.request, session.host.call_shapes
    if request.candidate.language != "triton" or request.problem.digest() in known:
        return
    start, calls = time.monotonic(), list[Fields]()
    for case in request.problem.cases:
        if time.monotonic() - start > SHAPES_S:
            return
        with session.on_device():
            sample = session.judge.described_call(case)
        if sample.layout.skipped:
            return
        calls.append(sample.call_fields(0))
    keep_call_shapes(session, calls)
