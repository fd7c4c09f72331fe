"""What is written to disk. Frozen records with exact JSON round trips; no torch."""

from tilewright.records.base import SCHEMA_VERSION, JsonValue, Record, digest_text
from tilewright.records.candidate import Baseline, Candidate
from tilewright.records.outcome import (
    Correct,
    Failed,
    FailedReason,
    Finding,
    Incorrect,
    Label,
    Outcome,
    Rejected,
    Stage,
    Unjudged,
    Verdict,
)
from tilewright.records.problem import Case, Problem, SourceFile
from tilewright.records.report import (
    CaseResult,
    Comparison,
    Environment,
    EvalReport,
    Profile,
    Protection,
    StageRecord,
    Timing,
)
from tilewright.records.request import EvalRequest, Limits, Protocol, Rules, TimingPlan

__all__ = [
    "SCHEMA_VERSION",
    "Baseline",
    "Candidate",
    "Case",
    "CaseResult",
    "Comparison",
    "Correct",
    "Environment",
    "EvalReport",
    "EvalRequest",
    "Failed",
    "FailedReason",
    "Finding",
    "Incorrect",
    "JsonValue",
    "Label",
    "Limits",
    "Outcome",
    "Problem",
    "Profile",
    "Protection",
    "Protocol",
    "Record",
    "Rejected",
    "Rules",
    "SourceFile",
    "Stage",
    "StageRecord",
    "Timing",
    "TimingPlan",
    "Unjudged",
    "Verdict",
    "digest_text",
]
