"""KernelGYM's rules over a report."""

from __future__ import annotations

import pytest

from tests import sample_reports as reports
from tilewright.errors import ConfigError
from tilewright.records import (
    Comparison,
    Correct,
    EvalReport,
    Failed,
    Finding,
    Incorrect,
    Rejected,
    Timing,
    Unjudged,
)
from tilewright.scoring.benchmarks.kernelgym import by_kernelgym


def finding(code, **evidence):
    return Finding(check="c", code=code, summary="s", weight="decisive", evidence=evidence)


def judged(outcome, language="torch", **more) -> EvalReport:
    request = reports.request()
    candidate = request.candidate.model_copy(update={"language": language})
    request = request.model_copy(update={"protocol": "official", "candidate": candidate})
    report = reports.report(outcome)
    fields = {"request": request, "outcome": outcome, "verdict": outcome.verdict, **more}
    return report.model_copy(update={"speedup": None, "comparisons": (), **fields})


def compared(rows):
    time = Timing(median_us=1, low_us=1, high_us=1, samples=2, method="host_clock")
    return Comparison(
        case="a",
        baseline="eager",
        candidate=time,
        baseline_timing=time,
        speedup=1.0,
        speedup_low=None,
        speedup_high=None,
        blocks=1,
        conclusion="no interval",
        raw_us=rows,
    )


def test_means_of_three_digits_are_divided():
    rows = ((1234.4, 617.2, 617.0, 1234.0), (1234.2, 617.0, 617.2, 1234.2))
    found = by_kernelgym(judged(Correct(), comparisons=(compared(rows),)))
    assert (found.reference_ms, found.kernel_ms) == (1.23, 0.617)
    assert found.speedup == 1.23 / 0.617
    assert by_kernelgym(judged(Correct())).speedup is None


@pytest.mark.parametrize(
    ("outcome", "language", "correct", "unused_kernel"),
    [
        (Rejected(findings=(finding("input_mutation"),)), "torch", True, False),
        (Rejected(findings=(finding("unused_kernel", launches=0),)), "triton", True, True),
        (Rejected(findings=(finding("unused_kernel", launches=0),)), "cuda", True, False),
        (Rejected(findings=(finding("unused_kernel", knocked_out=True),)), "triton", True, False),
        (Incorrect(kind="values", case="a", message="m"), "triton", False, False),
    ],
)
def test_only_a_triton_candidate_without_a_launch_is_a_decoy_kernel(
    outcome, language, correct, unused_kernel
):
    found = by_kernelgym(judged(outcome, language, findings=getattr(outcome, "findings", ())))
    assert (found.correctness, found.unused_kernel) == (correct, unused_kernel)


@pytest.mark.parametrize(
    ("outcome", "wanted"),
    [
        (Failed(stage="build", reason="build", message="m"),
         ("failed", False, False, "COMPILATION_ERROR")),
        (Failed(stage="load", reason="exception", message="m"),
         ("failed", False, False, "COMPILATION_ERROR")),
        (reports.failed_constructor("RuntimeError").outcome,
         ("completed", True, False, "RUNTIME_ERROR")),
        (reports.failed_constructor("TypeError").outcome,
         ("failed", False, False, "COMPILATION_ERROR")),
        (Failed(stage="correctness", reason="exception", message="m"),
         ("completed", True, False, "RUNTIME_ERROR")),
        (Failed(stage="correctness", reason="timeout", message="m"),
         ("failed", False, False, "TIMEOUT_ERROR")),
        (Failed(stage="timing", reason="exception", message="m"), ("completed", True, True, None)),
        (Unjudged(reason="no_device", message="m"), ("failed", False, False, "UNJUDGED")),
    ],
)  # fmt: skip
def test_failures_have_kernelgym_status_and_code(outcome, wanted):
    found = by_kernelgym(judged(outcome))
    assert (found.status, found.compiled, found.correctness, found.code) == wanted


def test_a_strict_report_cannot_be_judged_by_kernelgym_rules():
    with pytest.raises(ConfigError, match="official"):
        by_kernelgym(reports.report(Correct()))
