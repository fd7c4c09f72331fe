"""Whether an evaluation that ended is repeated once: its verdict may have a cause of ours."""

from __future__ import annotations

from tilewright.evaluator.processes.host import DeviceHost
from tilewright.records import EvalReport, Failed, Rejected
from tilewright.records.codes import FailureReason, FindingCode

TIME_BASED_CODES = {
    FindingCode.UNTIMED_WORK,
    FindingCode.UNFINISHED_WORK,
    FindingCode.BASELINE_INTERFERENCE,
}
"""Finding codes that rest on times alone, which a busy machine changes."""


def reason_to_repeat(report: EvalReport, host: DeviceHost) -> str:
    """Return why tilewright itself may be the cause of a verdict; empty: it is not."""
    outcome = report.outcome
    if isinstance(outcome, Failed) and outcome.reason == FailureReason.OUT_OF_MEMORY:
        crowded = host.device.is_gpu and host.end_idle()
        return "it ran out of memory while idle processes held some" if crowded else ""
    if (
        isinstance(outcome, Rejected)
        and {item.code for item in outcome.findings} <= TIME_BASED_CODES
    ):
        return "a rejection by times alone is confirmed once"
    return ""
