"""Evaluations of a run: each report is stored in the run folder and not repeated."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from pathlib import Path

from tilewright.errors import (
    ConfigError,
    InfrastructureError,
    ProblemError,
    RecordError,
)
from tilewright.executors.retrying import Backoff, retry
from tilewright.records import (
    Correct,
    EvalReport,
    EvalRequest,
    Problem,
    Protocol,
    Rejected,
)
from tilewright.records.base import digest_text
from tilewright.records.events import Ask, EvalSummary
from tilewright.records.run_folder import read_report
from tilewright.scoring.report_text import cut, reason_of
from tilewright.scoring.rewards import measured
from tilewright.scoring.roofline import roofline_points

__all__ = ["MAX_REASON", "AnswerEvaluator", "rule_of", "summary_of_report"]

REPORTS = "reports"
RETRIES, RETRY_DELAY_S = 2, 5.0
"""Retries of an evaluation with an internal error, and seconds before the first one."""
TOLERANCE = 1e-2
"""Tolerance of the published rules, unless a problem names another one."""
MAX_REASON = 400
"""Most characters of a reason in the event log."""
MAX_LOST_EVALUATIONS = 3
"""Consecutive evaluations with an internal error after which a run ends."""
Evaluate = Callable[[EvalRequest], EvalReport]


class AnswerEvaluator:
    """Evaluates into one run folder. Lifetime: the run. Safe to call from several threads."""

    def __init__(
        self, folder: Path, evaluate: Evaluate, *, retry_delay_s: float = RETRY_DELAY_S
    ) -> None:
        self._folder = folder
        self._evaluate = evaluate
        self._retry_delay_s = retry_delay_s
        self._over = threading.Event()
        self._lost = 0
        """Consecutive evaluations with an internal error."""
        self.episodes = itertools.count()
        """Numbers of episodes, each used once in a run folder."""

    def stop(self) -> None:
        """Make no more retries: the run ends."""
        self._over.set()

    def evaluate(self, ask: Ask, request: EvalRequest) -> tuple[EvalSummary, EvalReport | None]:
        """Evaluate a request, or read the report of an earlier invocation.

        Returns the summary for the event log, and the report if there is one.

        Raises:
            InfrastructureError: internal errors repeat; the run cannot continue on this machine.
        """
        path = self._folder / REPORTS / f"{digest_text(ask.id)[:16]}.{request.protocol}.json"
        found = _kept(path, request)
        if found is None:
            try:
                found = self._judged(request)
            except (ProblemError, InfrastructureError) as error:
                if self._over.is_set():
                    # The run ends; the next invocation evaluates again.
                    raise
                self._lost += isinstance(error, InfrastructureError)
                if self._lost >= MAX_LOST_EVALUATIONS:
                    # A broken machine would make every other answer unjudged.
                    raise
                unjudged = EvalSummary(
                    protocol=request.protocol,
                    verdict="unjudged",
                    reason=cut(str(error), MAX_REASON),
                )
                return unjudged, None
            self._lost = 0
            _keep(path, found)
        seconds = next((s.wall_s for s in found.stages if s.name == "total"), 0.0)
        name = path.relative_to(self._folder).as_posix()
        return summary_of_report(found, name, seconds), found

    def _judged(self, request: EvalRequest) -> EvalReport:
        def attempt() -> EvalReport:
            if self._over.is_set():
                raise InfrastructureError("the run ends")
            return self._evaluate(request)

        def retry_after(error: Exception) -> float | None:
            return 0.0 if isinstance(error, InfrastructureError) else None

        backoff = Backoff(self._retry_delay_s, attempts=RETRIES + 1)
        return retry(attempt, backoff, retry_after, self._over.wait)


def _kept(path: Path, request: EvalRequest) -> EvalReport | None:
    """Return the stored report of the same request, if it can be read."""
    try:
        found = read_report(path)
    except RecordError:
        return None
    # Several devices of one model share the work of a run.
    same = found.request.model_copy(update={"seed": request.seed, "device": request.device})
    return found if same == request else None


def _keep(path: Path, report: EvalReport) -> None:
    fresh = path.with_suffix(f".{threading.get_native_id()}.new")
    try:
        path.parent.mkdir(exist_ok=True)
        fresh.write_text(report.to_json(), encoding="utf-8")
        fresh.replace(path)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}") from error


def _unchecked(report: EvalReport) -> dict[str, float | None]:
    """Return the speed-up of a rejected candidate whose outputs were correct."""
    found = measured(report) if isinstance(report.outcome, Rejected) else None
    if found is None:
        return {}
    return {"unchecked": found[0], "unchecked_low": found[1]}


def summary_of_report(report: EvalReport, path: str, seconds: float) -> EvalSummary:
    """Return the summary of a report for the event log."""
    nearest = sorted(roofline_points(report), key=lambda item: item.comparison.candidate.median_us)
    timed = isinstance(report.outcome, Correct)
    sums = _sums(report) if timed else (None, None)
    return EvalSummary(
        protocol=report.request.protocol,
        verdict=report.verdict,
        reason=cut(reason_of(report), MAX_REASON),
        speedup=report.speedup if timed else None,
        low=report.speedup_low if timed else None,
        high=report.speedup_high if timed else None,
        reference_us=sums[0],
        candidate_us=sums[1],
        light=nearest[-1].candidate_share if nearest else None,
        coverage=report.profile.coverage if report.profile is not None else None,
        **_unchecked(report),
        findings=tuple(dict.fromkeys(item.code for item in report.findings)),
        labels=tuple(dict.fromkeys(item.name for item in report.labels)),
        tolerance=rule_of(report.request.protocol, report.request.problem),
        seconds=seconds,
        report=path,
    )


def rule_of(protocol: Protocol, problem: Problem) -> float | None:
    """Return the published tolerance of a verdict; `None`: the usual one, or strict rules."""
    by_rule = problem.tolerance if protocol == "official" else None
    return by_rule if by_rule != TOLERANCE else None


def _sums(report: EvalReport) -> tuple[float | None, float | None]:
    """Return the medians of the first baseline and of the candidate, summed over cases."""
    first = next((item.baseline for item in report.comparisons), None)
    chosen = [item for item in report.comparisons if item.baseline == first]
    if not chosen:
        return None, None
    reference = sum(item.baseline_timing.median_us for item in chosen)
    return reference, sum(item.candidate.median_us for item in chosen)
