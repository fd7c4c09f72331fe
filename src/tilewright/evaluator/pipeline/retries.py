"""When an evaluation is repeated: after an internal failure, or to confirm a verdict."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.errors import InfrastructureError
from tilewright.evaluator.context import EvaluationContext
from tilewright.evaluator.processes.host import DeviceHost
from tilewright.records import EvalReport, Failed, Rejected

__all__ = ["with_retries"]

MAX_ATTEMPTS = 2
"""Evaluations until a failure of tilewright itself is raised: a lost process rarely recurs."""
TIME_BASED_CODES = {"untimed_work", "baseline_interference"}
"""Finding codes that rest on times alone, which a busy machine changes."""


def with_retries(context: EvaluationContext, attempt: Callable[[], EvalReport]) -> EvalReport:
    """Return the report of an attempt, repeated after internal failures and once if doubtful.

    Raises:
        InfrastructureError: every attempt failed.
    """
    host, failures, repeated = context.host, 0, False
    while True:
        try:
            report = attempt()
        except InfrastructureError as error:
            failures += 1
            if failures == MAX_ATTEMPTS:
                raise
            if host.device.is_gpu:
                # Device memory may have been missing.
                host.end_idle()
            context.emit("retry", {"because": str(error)})
            continue
        reason = "" if repeated else reason_to_repeat(report, host)
        if not reason:
            return report
        repeated = True
        context.emit("retry", {"because": reason})


def reason_to_repeat(report: EvalReport, host: DeviceHost) -> str:
    """Return why a verdict may be tilewright's doing; empty: it is not.

    A candidate may lack device memory that idle processes held, which are ended here. A finding
    that rests on times alone may come from a busy machine.
    """
    outcome = report.outcome
    if isinstance(outcome, Failed) and outcome.reason == "out_of_memory":
        crowded = host.device.is_gpu and host.end_idle()
        return "it ran out of memory while idle processes held some" if crowded else ""
    if isinstance(outcome, Rejected):
        codes = {finding.code for finding in outcome.findings}
        return "a rejection by times alone is confirmed once" if codes <= TIME_BASED_CODES else ""
    return ""
