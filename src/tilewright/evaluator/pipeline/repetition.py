"""Whether an evaluation that ended is repeated once: its verdict may have a cause of ours."""

from __future__ import annotations

from tilewright.records import EvalReport, Rejected
from tilewright.records.codes import FindingCode

TIME_BASED_CODES = {
    FindingCode.UNTIMED_WORK,
    FindingCode.UNFINISHED_WORK,
    FindingCode.BASELINE_INTERFERENCE,
}
"""Finding codes that rest on times alone, which a busy machine changes."""


def reason_to_repeat(report: EvalReport) -> str:
    """Return why tilewright itself may be the cause of a verdict; empty: it is not."""
    outcome = report.outcome
    if (
        isinstance(outcome, Rejected)
        and {item.code for item in outcome.findings} <= TIME_BASED_CODES
    ):
        return "a rejection by times alone is confirmed once"
    return ""
