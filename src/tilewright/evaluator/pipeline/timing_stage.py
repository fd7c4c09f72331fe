"""Stage timing: the baselines and the candidate on every case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from tilewright.evaluator.pipeline.gpu_checks import clock_labels
from tilewright.evaluator.pipeline.memory_admission import note_use
from tilewright.evaluator.pipeline.prepare import precompile_all
from tilewright.evaluator.pipeline.session import EvaluationSession
from tilewright.evaluator.pipeline.timed_variations import choose_variations
from tilewright.evaluator.runners.baselines import (
    baseline_failed,
    replace_runners,
    start_baselines,
)
from tilewright.evaluator.runners.messages import EvaluationEnded
from tilewright.evaluator.timing import blocks
from tilewright.evaluator.timing.case_timings import CaseTimes
from tilewright.evaluator.timing.rounds import time_cases
from tilewright.evaluator.timing.value_dependence import value_labels
from tilewright.records import Case, Incorrect
from tilewright.records.codes import IncorrectKind, InputOrigin, LabelName, Stage


def time_candidate(session: EvaluationSession) -> None:
    """Time every case, unless the request or the machine does not allow it."""
    if not _may_time(session):
        return
    with session.stage(Stage.TIMING):
        # Processes of the last evaluation that are still ending would use the timed cores.
        session.host.wait_closed()
        cases = _chosen_cases(session)
        if session.request.protocol == "strict":
            choose_variations(session, cases)
        start_baselines(session.runners)
        for times in _time_cases(session, cases):
            session.observations.times.append(times)
            session.observations.labels += clock_labels(times) + value_labels(times)
            if times.wrong:
                name = f"{times.case}, timed"
                outcome = Incorrect(
                    kind=IncorrectKind.VALUES,
                    case=name,
                    inputs=InputOrigin.TIMED,
                    message=times.wrong[0],
                )
                raise EvaluationEnded(outcome)
        note_use(session, session.record_conditions("after timing"))


def _may_time(session: EvaluationSession) -> bool:
    request = session.request
    if not request.timing.enabled or not request.baselines:
        return False
    reason = ""
    if request.candidate.language == "triton" and not session.on_gpu:
        reason = "Triton runs in its interpreter here: correctness and checks, no claim about time"
    elif not session.host.cores.separate:
        reason = "one core only: the clock would share it with what it times"
    elif _asks_for_cuda(session):
        reason = "the reference itself asks for a CUDA device, so no baseline runs on a CPU"
    elif session.observations.correctness.mutated and request.protocol == "strict":
        reason = "rejected before timing"
    if reason:
        session.add_label(LabelName.NOT_TIMED, reason)
    return not reason


def _asks_for_cuda(session: EvaluationSession) -> bool:
    health = session.problem_health
    return health is not None and any(case.cuda_in_reference for case in health.cases)


def _chosen_cases(session: EvaluationSession) -> list[Case]:
    """Return the cases that are timed, and label the report if some are not."""
    cases, most = session.request.problem.cases, session.request.timing.timed_cases
    chosen = timed_cases(cases, session.observations.correctness.sizes, most)
    if len(chosen) < len(cases):
        names = ", ".join(case.name for case in chosen)
        detail = f"{len(chosen)} of {len(cases)} cases were timed, by the size of their inputs"
        session.add_label(LabelName.TIMED_SAMPLE, f"{detail}: {names}")
    return chosen


def timed_cases(cases: Sequence[Case], sizes: Mapping[str, int], most: int) -> list[Case]:
    """Return at most `most` cases in their order: the smallest, the largest, and some between.

    `sizes` are the bytes of the inputs of each case.
    """
    if len(cases) <= most:
        return list(cases)
    ordered = sorted(cases, key=lambda case: sizes.get(case.name, 0))
    last = len(ordered) - 1
    # One case is the largest one.
    places = {round(last * number / (most - 1)) for number in range(most)} if most > 1 else {last}
    names = {ordered[place].name for place in places}
    return [case for case in cases if case.name in names]


def _time_cases(session: EvaluationSession, cases: Sequence[Case]) -> list[CaseTimes]:
    pool, names = session.runners, [item.name for item in session.request.baselines]
    runners = [*names, "candidate"]
    try:
        if session.request.protocol == "official":
            return [blocks.time_case_official(pool, case, runners) for case in cases]
        restart = partial(_restart, session)
        return time_cases(pool, session.calibration, cases, runners, restart)
    except EvaluationEnded as ended:
        if ended.runner in names:
            raise baseline_failed(session.context, ended.runner, ended) from ended
        raise


def _restart(session: EvaluationSession, *, fresh: bool) -> None:
    # The calls so far have shown the shapes of a new problem; each new process would compile.
    precompile_all(session)
    replace_runners(session.runners, fresh=fresh)
