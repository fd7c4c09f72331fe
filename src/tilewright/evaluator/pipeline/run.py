"""The pipeline: one request in, one report out. Each stage may end the evaluation."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.evaluator.context import Emit, EvaluationContext
from tilewright.evaluator.evidence import Observations
from tilewright.evaluator.pipeline.acquire import acquire_device, load_candidate, start_judge
from tilewright.evaluator.pipeline.ceilings import complete_ceilings
from tilewright.evaluator.pipeline.correctness import check_correctness
from tilewright.evaluator.pipeline.gpu_checks import refuse_quarantined
from tilewright.evaluator.pipeline.launch_suppression import measure_own_work
from tilewright.evaluator.pipeline.prepare import prepare
from tilewright.evaluator.pipeline.profiling import trace_kernels
from tilewright.evaluator.pipeline.retries import with_retries
from tilewright.evaluator.pipeline.session import EvaluationSession
from tilewright.evaluator.pipeline.shutdown import shut_down
from tilewright.evaluator.pipeline.timing_stage import time_candidate
from tilewright.evaluator.pipeline.weights_recheck import passes_with_initial_weights
from tilewright.evaluator.processes.host import DeviceHost
from tilewright.evaluator.runners.ended import EvaluationEnded
from tilewright.evaluator.seeds import random_root
from tilewright.evaluator.verdict import build_report
from tilewright.records import Correct, EvalReport, EvalRequest, Failed, Incorrect, Outcome

__all__ = ["STAGES", "evaluate"]

Stage = Callable[[EvaluationSession], None]
"""A part of the evaluation. It raises `EvaluationEnded` if no later part is needed."""

STAGES: tuple[Stage, ...] = (
    prepare,
    acquire_device,
    start_judge,
    load_candidate,
    check_correctness,
    trace_kernels,
    time_candidate,
    measure_own_work,
    shut_down,
    complete_ceilings,
)


def evaluate(
    host: DeviceHost,
    request: EvalRequest,
    emit: Emit,
    watch: Callable[[], None],
    *,
    checks: tuple[str, ...] | None = None,
) -> EvalReport:
    """Evaluate one candidate.

    Args:
        host: the device's processes, cores and lease.
        request: the candidate, its problem, and the rules.
        emit: reports progress.
        watch: is called while the supervisor waits; it raises if the client has gone.
        checks: names of the checks to run; `None`: all.

    Raises:
        ProblemError: the problem cannot be used.
        InfrastructureError: tilewright itself failed twice.
    """
    host.wait_closed()
    context = EvaluationContext(host, request, request.seed or random_root(), emit, watch)
    return with_retries(context, lambda: _evaluate_once(context, checks))


def _evaluate_once(context: EvaluationContext, checks: tuple[str, ...] | None) -> EvalReport:
    refuse_quarantined(context.host)
    with EvaluationSession(context) as session:
        outcome = _run_stages(session)
        context.host.suspect |= isinstance(outcome, Failed) and session.on_gpu
    return build_report(context, session.observations, outcome, session.calibration, checks=checks)


def _run_stages(session: EvaluationSession) -> Outcome:
    """Run the stages until one of them ends the evaluation."""
    try:
        for stage in STAGES:
            stage(session)
    except EvaluationEnded as ended:
        return _explained(session, ended.outcome)
    return Correct()


def _explained(session: EvaluationSession, outcome: Outcome) -> Outcome:
    """Return the outcome, with another kind if the candidate is right with its initial weights."""
    observations: Observations = session.observations
    if (
        isinstance(outcome, Incorrect)
        and session.runners.problem.has_weights
        and not observations.times
    ):
        observations.passes_with_initial_weights = passes_with_initial_weights(session)
        if observations.passes_with_initial_weights:
            return outcome.model_copy(update={"kind": "weights"})
    return outcome
