"""Reports written by hand, one of each verdict."""

from __future__ import annotations

import math
from typing import Any

from tilewright.problems.loader import find_problem
from tilewright.records import (
    Baseline,
    Candidate,
    CaseResult,
    Comparison,
    Correct,
    EvalReport,
    EvalRequest,
    Failed,
    Finding,
    Incorrect,
    IsolationStatus,
    Label,
    Rejected,
    ReportEnvironment,
    SourceFile,
    StageRecord,
    Timing,
    Unjudged,
)

SOURCE = "import torch\n\n\ndef add_relu(x, y):\n    return torch.relu(x + y)\n"
SEED = "0123456789abcdef0123456789abcdef"


def request(**changes: Any) -> EvalRequest:
    fields: dict[str, Any] = {
        "problem": find_problem("add_relu"),
        "candidate": Candidate(
            language="torch",
            files=(SourceFile(path="fast.py", text=SOURCE),),
            entry="add_relu",
        ),
        "baselines": (Baseline(name="eager", kind="eager"),),
    }
    return EvalRequest(**{**fields, **changes})


def timing(median_us: float) -> Timing:
    return Timing(
        median_us=median_us,
        low_us=median_us * 0.99,
        high_us=median_us * 1.01,
        samples=40,
        method="host_clock",
    )


def comparison(
    case: str, speedup: float, half: float, *, labels: tuple[str, ...] = (), us: float = 1500.0
) -> Comparison:
    low, high = speedup * math.exp(-half), speedup * math.exp(half)
    decision = "faster" if low > 1 else "slower" if high < 1 else "no measurable difference"
    raw = tuple((us, us / speedup * (1 + k / 100), us / speedup, us) for k in range(20))
    return Comparison(
        case=case,
        baseline="eager",
        candidate=timing(us / speedup),
        baseline_timing=timing(us),
        speedup=speedup,
        speedup_low=low,
        speedup_high=high,
        blocks=20,
        conclusion=decision,
        labels=labels,
        raw_us=raw,
    )


def case(name: str, variation: str = "nominal", result: str = "pass", **more: Any) -> CaseResult:
    fields: dict[str, Any] = {"oracle": "float64", "seed": "7"}
    if result == "pass":
        fields["error_over_tolerance"] = 0.031
    return CaseResult(case=name, input_variation=variation, result=result, **{**fields, **more})


PROTECTIONS = (
    IsolationStatus(name="pid_namespace", active=True),
    IsolationStatus(name="landlock", active=False, detail="Function not implemented"),
    IsolationStatus(name="seccomp", active=True),
)


def report(outcome: Any = None, **changes: Any) -> EvalReport:
    outcome = outcome or Correct()
    fields: dict[str, Any] = {
        "verdict": outcome.verdict,
        "outcome": outcome,
        "stages": (
            StageRecord(name="build", wall_s=0.0123),
            StageRecord(name="total", wall_s=2.5, detail="0.2000 s outside 2.3000 s of calls"),
        ),
        "isolation": PROTECTIONS,
        "environment": ReportEnvironment(
            device="cpu",
            device_name="A processor",
            host={"cores": 2, "timed_cores": [0], "judge_cores": [1]},
            versions={"python": "3.12.1", "torch": "2.9.0"},
        ),
        "seed": SEED,
        "request": request(),
        "evaluator": "0.1.0",
    }
    return EvalReport(**{**fields, **changes})


def correct() -> EvalReport:
    return report(
        speedup=1.42,
        speedup_low=1.36,
        speedup_high=1.47,
        comparisons=(
            comparison("tiny", 1.005, 0.02, labels=("uncalibrated", "short_call"), us=12.0),
            comparison("large", 2.0, 0.04, labels=("uncalibrated",), us=2500.0),
        ),
        cases=(
            case("tiny"),
            case("large", "scale", error_over_tolerance=0.2),
            case("large", "heavy_tail", "skipped", detail="the reference itself is inaccurate"),
        ),
        labels=(Label(name="library_call", detail="aten::relu"),),
    )


def incorrect() -> EvalReport:
    message = "at [1, 4]: expected 0.5, got 0; error 5.2e+05 times the allowed one"
    return report(
        Incorrect(kind="values", case="tiny, nominal", message=message, error_over_tolerance=5.2e5),
        cases=(case("tiny", result="fail", detail=message),),
        candidate_output="\x1b[2Jcorrect\nspeedup 100x\n",
    )


def failed(stage: str = "load") -> EvalReport:
    message = "ValueError: boom [/bold]\nfast.py:3 in add_relu: raise ValueError"
    return report(Failed(stage=stage, reason="exception", message=message))


def failed_constructor(exception: str = "RuntimeError") -> EvalReport:
    outcome = Failed(
        stage="construct", reason="exception", message="E: no device", exception=exception
    )
    return report(outcome)


def rejected() -> EvalReport:
    finding = Finding(
        check="unused_kernels",
        code="unused_kernel",
        summary="no kernel of the candidate's own was launched",
        weight="decisive",
        evidence={"calls": 3},
    )
    return report(Rejected(findings=(finding,)), findings=(finding,), cases=(case("tiny"),))


def unjudged() -> EvalReport:
    return report(Unjudged(reason="no_device", message="CUDA candidates need a GPU"))
