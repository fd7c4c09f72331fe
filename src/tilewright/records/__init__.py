"""Records that tilewright stores: immutable, with exact JSON round trips, and without torch."""

from pydantic import JsonValue

from tilewright.records.base import SCHEMA_VERSION, Record, digest_text
from tilewright.records.outcome import (
    Correct,
    Failed,
    Finding,
    Incorrect,
    Label,
    Outcome,
    Rejected,
    Unjudged,
    Verdict,
)
from tilewright.records.problem import Case, Problem, SourceFile
from tilewright.records.report import (
    CaseResult,
    Ceilings,
    Comparison,
    EvalReport,
    IsolationStatus,
    KernelTime,
    Profile,
    ReportEnvironment,
    StageRecord,
    Timing,
    Work,
)
from tilewright.records.request import (
    Baseline,
    Candidate,
    EvalRequest,
    Limits,
    Protocol,
    Rules,
    TimingPlan,
)

__all__ = [
    "SCHEMA_VERSION",
    "Baseline",
    "Candidate",
    "Case",
    "CaseResult",
    "Ceilings",
    "Comparison",
    "Correct",
    "EvalReport",
    "EvalRequest",
    "Failed",
    "Finding",
    "Incorrect",
    "IsolationStatus",
    "JsonValue",
    "KernelTime",
    "Label",
    "Limits",
    "Outcome",
    "Problem",
    "Profile",
    "Protocol",
    "Record",
    "Rejected",
    "ReportEnvironment",
    "Rules",
    "SourceFile",
    "StageRecord",
    "Timing",
    "TimingPlan",
    "Unjudged",
    "Verdict",
    "Work",
    "digest_text",
]
