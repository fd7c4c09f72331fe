"""Stage shutdown: the candidate's process ends, and nothing of it may stay on the device."""

from __future__ import annotations

import os

from tilewright.evaluator.pipeline.gpu_checks import check_interference
from tilewright.evaluator.pipeline.launch_suppression import SUPPRESSED
from tilewright.evaluator.pipeline.session import EvaluationSession
from tilewright.evaluator.runners.baselines import attribute_to_baseline
from tilewright.evaluator.runners.messages import EvaluationEnded
from tilewright.records import Failed

__all__ = ["shut_down"]


def shut_down(session: EvaluationSession) -> None:
    """Let the candidate's process end; a death by a signal there is memory corruption.

    Raises:
        EvaluationEnded: a signal ended the process.
    """
    with session.stage("shutdown"):
        _shut_down(session)


def _shut_down(session: EvaluationSession) -> None:
    pool, exit_s = session.runners, session.request.limits.exit_s
    runner = pool.runners.get("candidate")
    status: int | None = 0
    if runner is not None:
        runner.stage = "shutdown"
        status = runner.end(exit_s)
    if session.on_gpu and session.observations.times:
        if runner is not None:
            pool.record_output("candidate")
        for name in ("candidate", SUPPRESSED):
            pool.stop(name)
        with attribute_to_baseline(session.context, session.request.baselines[0].name):
            check_interference(session)
    if runner is None:
        detail = "its process was lost when it was called without its own launches"
        session.add_label("exit_unverified", detail)
    if status is None:
        session.add_label("exit_timeout", f"its process did not end within {exit_s:g} s")
    elif os.WIFSIGNALED(status):
        message = f"its process died of signal {os.WTERMSIG(status)} while it ended"
        raise EvaluationEnded(Failed(stage="shutdown", reason="memory_corruption", message=message))
