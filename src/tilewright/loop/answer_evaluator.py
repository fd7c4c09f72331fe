"""Evaluations of a run: each report is stored in the run folder and not repeated."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tilewright.config import Config
from tilewright.errors import InfrastructureError, ProblemError, RecordError, writing
from tilewright.executors.base import Executor
from tilewright.executors.census_executor import CensusExecutor
from tilewright.executors.factory import open_executor
from tilewright.executors.retrying import Backoff, retry
from tilewright.loop.throughput import BEGUN, ENDED
from tilewright.records import Correct, EvalReport, EvalRequest, Problem, Protocol, Rejected
from tilewright.records.base import digest_text
from tilewright.records.codes import Stage
from tilewright.records.events import Ask, EvalSummary
from tilewright.records.run_folder import read_report
from tilewright.registry import selected_checks
from tilewright.scoring.paired_times import paired_times
from tilewright.scoring.report_text import cut, reason_of
from tilewright.scoring.rewards import measured
from tilewright.scoring.roofline import roofline_points

REPORTS = "reports"
RETRIES, RETRY_DELAY_S = 2, 5.0
"""Retries of an evaluation with an internal error, and seconds before the first one."""
TOLERANCE = 1e-2
"""Tolerance of the published rules, unless a problem names another one."""
MAX_REASON = 400
"""Most characters of a reason in the event log."""
MAX_LOST_EVALUATIONS = 3
"""Consecutive evaluations with an internal error after which a run ends."""
MAX_WORKERS = 4
"""Most supervisors on this machine, whatever the concurrency of the settings is."""
Evaluate = Callable[[EvalRequest], EvalReport]
OnEvent = Callable[[str, dict[str, object]], None]
"""Receives the progress events of evaluations, with the `number` of the evaluation."""


class AnswerEvaluator:
    """Evaluates into one run folder. Lifetime: the run. Safe to call from several threads."""

    def __init__(
        self,
        folder: Path,
        evaluate: Evaluate,
        *,
        retry_delay_s: float = RETRY_DELAY_S,
        simulated: bool = False,
    ) -> None:
        self._folder, self._evaluate, self._retry_delay_s = folder, evaluate, retry_delay_s
        self._simulated = simulated
        """Whether trials are resampled. Then their seeds follow from the requests of the run, so
        that a resumed run gets equal trials. Real evaluations have secret random seeds."""
        self._over = threading.Event()
        self._lost = 0
        """Consecutive evaluations with an internal error."""
        self.episodes = itertools.count()
        """Numbers of episodes, each used once in a run folder."""

    def stop(self) -> None:
        """Make no more retries: the run ends."""
        self._over.set()

    def evaluate(self, ask: Ask, request: EvalRequest) -> tuple[EvalSummary, EvalReport | None]:
        """Return the summary and the report of a request, also from an earlier invocation.

        Raises:
            InfrastructureError: internal errors repeat; the run cannot continue on this machine.
        """
        path = self._folder / REPORTS / f"{digest_text(ask.id)[:16]}.{request.protocol}.json"
        if self._simulated:
            request = request.model_copy(update={"seed": digest_text(ask.id)[:32]})
        found = _kept(path, request)
        if found is None:
            try:
                found = retry(
                    lambda: self._attempt(request),
                    Backoff(self._retry_delay_s, attempts=RETRIES + 1),
                    lambda error: 0.0 if isinstance(error, InfrastructureError) else None,
                    self._over.wait,
                )
            except (ProblemError, InfrastructureError) as error:
                if self._over.is_set():
                    # The run ends; the next invocation evaluates again.
                    raise
                self._lost += isinstance(error, InfrastructureError)
                if self._lost >= MAX_LOST_EVALUATIONS:
                    # A broken machine would make every other answer unjudged.
                    raise
                return unjudged(request.protocol, str(error)), None
            self._lost = 0
            _keep(path, found)
        seconds = next((s.wall_s for s in found.stages if s.name == Stage.TOTAL), 0.0)
        name = path.relative_to(self._folder).as_posix()
        return summary_of_report(found, name, seconds), found

    def _attempt(self, request: EvalRequest) -> EvalReport:
        if self._over.is_set():
            raise InfrastructureError("the run ends")
        return self._evaluate(request)


def _kept(path: Path, request: EvalRequest) -> EvalReport | None:
    try:
        found = read_report(path)
    except RecordError:
        return None
    # Several devices of one model share the work of a run.
    same = found.request.model_copy(update={"seed": request.seed, "device": request.device})
    return found if same == request else None


def _keep(path: Path, report: EvalReport) -> None:
    fresh = path.with_suffix(f".{threading.get_native_id()}.new")
    with writing(path):
        path.parent.mkdir(exist_ok=True)
        fresh.write_text(report.to_json(), encoding="utf-8")
        fresh.replace(path)


def open_evaluator(
    settings: Config,
    folder: Path,
    on_event: OnEvent = lambda *_: None,
    workers: int | None = None,
    *,
    executor: Executor | None = None,
) -> tuple[Executor, AnswerEvaluator]:
    """Return an executor for these settings, and an evaluator that uses it for a run folder.

    `executor`: one that other run folders use too; default: a new one.
    """
    workers = workers or min(settings.loop.max_concurrency, MAX_WORKERS)
    opened = executor or open_executor(settings, workers)
    checks = selected_checks(settings.plugins)
    lock, numbers = threading.Lock(), itertools.count()

    def serialised(number: int, event: str, fields: dict[str, object]) -> None:
        with lock:
            on_event(event, {**fields, "number": number})

    def evaluate(request: EvalRequest) -> EvalReport:
        told, judged = partial(serialised, next(numbers)), False
        told(BEGUN, {})
        try:
            report = opened.evaluate(request, told, checks=checks)
            judged = True
        finally:
            told(ENDED, {"judged": judged})
        return report

    simulated = isinstance(opened, CensusExecutor)
    return opened, AnswerEvaluator(folder, evaluate, simulated=simulated)


def unjudged(protocol: Protocol, reason: str) -> EvalSummary:
    """Return the summary of an answer without a verdict."""
    return EvalSummary(protocol=protocol, verdict="unjudged", reason=cut(reason, MAX_REASON))


def summary_of_report(report: EvalReport, path: str, seconds: float) -> EvalSummary:
    """Return the summary of a report for the event log."""
    nearest = sorted(roofline_points(report), key=lambda item: item.comparison.candidate.median_us)
    timed = isinstance(report.outcome, Correct)
    unchecked = measured(report) if isinstance(report.outcome, Rejected) else None
    first = next((item.baseline for item in report.comparisons), None)
    chosen = [item for item in report.comparisons if timed and item.baseline == first]
    return EvalSummary(
        protocol=report.request.protocol,
        verdict=report.verdict,
        reason=cut(reason_of(report), MAX_REASON),
        # Only some outcomes have these fields.
        code=getattr(report.outcome, "kind", None) or getattr(report.outcome, "reason", None),
        stage=getattr(report.outcome, "stage", None),
        exception=getattr(report.outcome, "exception", None),
        inputs=getattr(report.outcome, "inputs", None),
        speedup=report.speedup if timed else None,
        low=report.speedup_low if timed else None,
        high=report.speedup_high if timed else None,
        reference_us=sum(paired_times(c).baseline_us for c in chosen) if chosen else None,
        candidate_us=sum(paired_times(c).candidate_us for c in chosen) if chosen else None,
        roofline_fraction=nearest[-1].candidate_share if nearest else None,
        coverage=report.profile.coverage if report.profile is not None else None,
        unchecked=unchecked[0] if unchecked else None,
        unchecked_speedup_low=unchecked[1] if unchecked else None,
        findings=tuple(dict.fromkeys(item.code for item in report.findings)),
        labels=tuple(dict.fromkeys(item.name for item in report.labels)),
        tolerance=nondefault_tolerance(report.request.protocol, report.request.problem),
        seconds=seconds,
        report=path,
        condition=condition_of(report),
    )


def condition_of(report: EvalReport) -> str:
    """Return a digest of everything but the code on which a speed-up depends.

    Trials of equal conditions may be pooled: one device model, one version, the same baselines.
    """
    request, where = report.request, report.environment
    baselines = [item.to_json() for item in request.baselines]
    parts = (where.device_name, report.evaluator, request.protocol, *baselines)
    return digest_text("\0".join(parts))[:16]


def nondefault_tolerance(protocol: Protocol, problem: Problem) -> float | None:
    """Return the published tolerance of a verdict; `None`: the usual one, or strict rules."""
    by_rule = problem.tolerance if protocol == "official" else None
    return by_rule if by_rule != TOLERANCE else None
