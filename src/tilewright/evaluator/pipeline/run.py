"""The pipeline: one request in, one report out. Each stage may end the evaluation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tilewright.errors import InfrastructureError, ProblemOutOfMemory
from tilewright.evaluator.context import Emit, EvaluationContext
from tilewright.evaluator.pipeline.ceilings_stage import complete_ceilings
from tilewright.evaluator.pipeline.correctness import check_correctness
from tilewright.evaluator.pipeline.gpu_checks import refuse_quarantined
from tilewright.evaluator.pipeline.judge_preparation import prepare_judge
from tilewright.evaluator.pipeline.launch_suppression import measure_own_work, trace_kernels
from tilewright.evaluator.pipeline.lifecycle import (
    acquire_device,
    load_candidate,
    shut_down,
    start_judge,
)
from tilewright.evaluator.pipeline.memory_attribution import (
    attribute_out_of_memory,
    attribute_weak_oracle,
    outcome_of_shortage,
)
from tilewright.evaluator.pipeline.prepare import prepare
from tilewright.evaluator.pipeline.repetition import reason_to_repeat
from tilewright.evaluator.pipeline.requested_builds import recall, remember
from tilewright.evaluator.pipeline.session import EvaluationSession
from tilewright.evaluator.pipeline.timing_stage import time_candidate
from tilewright.evaluator.pipeline.wrong_output import explained
from tilewright.evaluator.processes.host import DeviceHost
from tilewright.evaluator.processes.memory_ledger import DeviceCrowded
from tilewright.evaluator.runners.build_requests import BuildRequested
from tilewright.evaluator.runners.messages import EvaluationEnded
from tilewright.evaluator.seeds import random_root
from tilewright.evaluator.verdict import build_report
from tilewright.records import (
    Correct,
    EvalReport,
    EvalRequest,
    Failed,
    Outcome,
)

MAX_ATTEMPTS = 2
"""Evaluations until a failure of tilewright itself is raised: a lost process rarely recurs."""
StageFunction = Callable[[EvaluationSession], None]
"""A part of the evaluation. It raises `EvaluationEnded` if no later part is needed, and
`ProblemError` if the problem or a baseline fails."""

STAGES: tuple[StageFunction, ...] = (
    prepare,
    prepare_judge,
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
    """Evaluate one candidate; repeat it after an internal failure, and once if in doubt.

    `checks` names the checks to run; `None`: all. `EvaluationContext` explains the others.

    Raises:
        ProblemError: the problem cannot be used.
        InfrastructureError: tilewright itself failed twice.
    """
    host.wait_closed()
    root, requested = request.seed or random_root(), recall(host, request)
    context = EvaluationContext(host, request, root, emit, watch, requested)
    failures, repeated = 0, False
    while True:
        try:
            report = _evaluate_once(context, checks)
        except BuildRequested as unbuilt:
            # No failure of tilewright, so no attempt: the runner's own limit ends it.
            context = replace(context, requested=(*context.requested, unbuilt.build))
            remember(host, request, context.requested)
            emit("retry", {"because": str(unbuilt)})
            continue
        except InfrastructureError as error:
            # Memory that others held is no failure, and is missing once at most.
            alone = context.alone_reason is not None
            if alone or not isinstance(error, DeviceCrowded):
                failures += 1
            if failures == MAX_ATTEMPTS:
                raise
            # Other failures on a GPU may have the same cause.
            if host.ledger is not None and not alone:
                context = replace(context, alone_reason=str(error))
            emit("retry", {"because": str(error)})
            continue
        reason = "" if repeated else reason_to_repeat(report)
        if not reason:
            return report
        repeated = True
        emit("retry", {"because": reason})


def _evaluate_once(context: EvaluationContext, checks: tuple[str, ...] | None) -> EvalReport:
    refuse_quarantined(context.host)
    unbuilt: BuildRequested | None = None
    outcome: Outcome = Correct()
    with EvaluationSession(context) as session:
        try:
            outcome = attribute_weak_oracle(session, _run_stages(session))
        except BuildRequested as error:
            # After an exception the session would end its judge, which nothing has happened to.
            unbuilt = error
        context.host.suspect |= isinstance(outcome, Failed) and session.on_gpu
    if unbuilt is not None:
        raise unbuilt
    return build_report(context, session.observations, outcome, session.calibration, checks=checks)


def _run_stages(session: EvaluationSession) -> Outcome:
    """Run the stages until one of them ends the evaluation."""
    try:
        for stage in STAGES:
            stage(session)
    except EvaluationEnded as ended:
        return explained(session, attribute_out_of_memory(session, ended.outcome))
    except ProblemOutOfMemory as error:
        if outcome := outcome_of_shortage(session, error):
            return outcome
        raise
    return Correct()
