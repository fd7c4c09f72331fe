"""Judging an answer under each protocol of a run, with every report kept in the run folder."""

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
from tilewright.scoring.roofline import lights

__all__ = ["MAX_REASON", "AnswerEvaluator", "rule_of", "summary_of_report"]

REPORTS = "reports"
RETRIES, RETRY_DELAY_S = 2, 5.0
"""How often an evaluation is repeated in which our own side failed, and after how long."""
TOLERANCE = 1e-2
"""Tolerance of the published rules, unless a problem names another."""
MAX_REASON = 400
"""Characters of a reason that the log keeps."""
MAX_LOST_EVALUATIONS = 3
"""After how many evaluations in a row that our own side failed a run ends."""
Evaluate = Callable[[EvalRequest], EvalReport]


class AnswerEvaluator:
    """Judges asks into one run folder. Lifetime: the run. Safe to call from several threads."""

    def __init__(
        self, folder: Path, evaluate: Evaluate, *, retry_delay_s: float = RETRY_DELAY_S
    ) -> None:
        self._folder = folder
        self._evaluate = evaluate
        self._retry_delay_s = retry_delay_s
        self._over = threading.Event()
        self._lost = 0
        """How many evaluations in a row our own side has failed."""
        self.episodes = itertools.count()
        """Numbers of episodes, of which none comes twice in a run folder."""

    def stop(self) -> None:
        """Repeat nothing from now on: the run ends."""
        self._over.set()

    def evaluate(self, ask: Ask, request: EvalRequest) -> tuple[EvalSummary, EvalReport | None]:
        """Judge one request; what was judged before the run was killed is not judged again.

        Returns what the event log says of it, and the report where there is one.

        Raises:
            InfrastructureError: our own side fails again and again; the run cannot go on here.
        """
        path = self._folder / REPORTS / f"{digest_text(ask.id)[:16]}.{request.protocol}.json"
        found = _kept(path, request)
        if found is None:
            try:
                found = self._judged(request)
            except (ProblemError, InfrastructureError) as error:
                if self._over.is_set():
                    # The run ends; whoever goes on with it asks again.
                    raise
                self._lost += isinstance(error, InfrastructureError)
                if self._lost >= MAX_LOST_EVALUATIONS:
                    # A machine that is broken would use up all that is left.
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
    """Return the report of the same work, if it is there whole."""
    try:
        found = read_report(path)
    except RecordError:
        return None
    # Several devices of one model share a run's work.
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
    """Return how fast a rejected candidate was measured; it was right before it was rejected."""
    found = measured(report) if isinstance(report.outcome, Rejected) else None
    if found is None:
        return {}
    return {"unchecked": found[0], "unchecked_low": found[1]}


def summary_of_report(report: EvalReport, path: str, seconds: float) -> EvalSummary:
    """Return what the event log says of a report."""
    nearest = sorted(lights(report), key=lambda item: item.comparison.candidate.median_us)
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
    """Return by which published tolerance a verdict comes; `None`: the usual one, or a strict."""
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
