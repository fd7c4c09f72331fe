"""The cause of a difference between protocols, and the kind of a failure."""

from __future__ import annotations

import pytest

from tests import sample_reports as reports
from tilewright.loop.answer_evaluator import summary_of_report
from tilewright.loop.rollout_environment import unusable
from tilewright.records import Failed, Finding, Incorrect, Rejected
from tilewright.records.events import EvalSummary
from tilewright.scoring.protocol_differences import BY_FINDING, cause_of, kind_of

RIGHT = EvalSummary(protocol="official", verdict="correct")


def judged(outcome: Incorrect | Failed | Rejected) -> EvalSummary:
    changes = {"outcome": outcome, "verdict": outcome.verdict}
    if isinstance(outcome, Rejected):
        changes["findings"] = outcome.findings
    return summary_of_report(reports.incorrect().model_copy(update=changes), "", 1.0)


def wrong(kind: str, inputs: str) -> EvalSummary:
    message = "at [3]: expected 1, got 2"
    fields = {"kind": kind, "case": f"a (b): c, {inputs}", "inputs": inputs, "message": message}
    return judged(Incorrect.model_validate(fields))


@pytest.mark.parametrize(
    ("inputs", "kind", "cause"),
    [
        ("nominal", "values", "B3: "),
        ("timed", "values", "B5: "),
        ("varied", "values", "published rules draw inputs of one kind"),
        ("hidden_size", "nonfinite", "published rules draw inputs of one kind"),
        ("nominal", "weights", "published rules never load other weights"),
        ("nominal", "mutation", "published rules do not look at inputs"),
        ("nominal", "dtype", "the published comparison does not look at the form"),
    ],
)
def test_a_candidate_that_only_official_rules_accept_has_its_defect(inputs, kind, cause):
    strict = wrong(kind, inputs)
    assert kind_of(strict) == kind
    assert cause_of("kernelbench/level1-1", RIGHT, strict).startswith(cause)


@pytest.mark.parametrize("code", BY_FINDING)
def test_each_finding_code_has_its_defect(code):
    note = Finding(check="c", code="proc_access", summary="s")
    found = Finding(check="c", code=code, summary="s", weight="decisive")
    assert cause_of("p", RIGHT, judged(Rejected(findings=(note, found)))) == BY_FINDING[code]


def test_a_candidate_that_only_official_rules_refuse_has_its_defect():
    strict = RIGHT.model_copy(update={"protocol": "strict"})
    no = wrong("values", "nominal")
    assert cause_of("kernelbenchx/Quantization/bmm_w8a8", no, strict).startswith("K2: ")
    assert cause_of("kernelbenchx/Math/exp", no, strict).startswith("the published tolerance is")
    assert cause_of("p", wrong("shape", "nominal"), strict) == ""


def test_the_kind_of_a_failure_follows_its_stage_and_reason():
    failed = judged(Failed(stage="load", reason="timeout", message="no answer: 6 s"))
    assert kind_of(failed) == "timeout in load"
    assert cause_of("p", RIGHT, failed).startswith("it failed under one protocol alone")
    assert (
        kind_of(unusable("strict", reports.incorrect().request.problem, "no code"))
        == "syntax_error in build"
    )
    assert kind_of(RIGHT) == ""
    words_alone = EvalSummary(protocol="strict", verdict="failed", reason="timeout in load: x")
    assert kind_of(words_alone) == ""
    assert (
        cause_of("p", RIGHT, wrong("values", "nominal").model_copy(update={"inputs": None})) == ""
    )
