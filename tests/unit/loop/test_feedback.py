"""Feedback to a model: golden texts, a token budget, and secrets that it must not reveal.

After a change on purpose: `python -m tests.unit.loop.test_feedback` writes the golden files anew.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import sample_reports as reports
from tilewright.loop.answer_evaluator import summary_of_report
from tilewright.loop.feedback import (
    CHARACTERS_PER_TOKEN,
    FEEDBACK,
    JudgedAnswer,
    feedback,
    redacted,
)
from tilewright.records import Failed
from tilewright.records.events import EvalSummary
from tilewright.scoring.rewards import REWARDS

GOLDEN = Path(__file__).parents[2] / "golden" / "feedback"
TRACE = """RuntimeError: shape '[4, 5]' is invalid
/tmp/candidate/candidate.py:12 in work: return x.view(4, 5)
File "/usr/lib/python3.11/site-packages/torch/nn/modules.py", line 3, in forward
seed 0123456789abcdef0123456789abcdef"""
SEEN = {
    "correct": reports.correct(),
    "incorrect": reports.incorrect(),
    "failed": reports.report(Failed(stage="load", reason="exception", message=TRACE)),
    "rejected": reports.rejected(),
    "unjudged": reports.unjudged(),
}


def answer_of(name: str, preset: str = "tilewright") -> JudgedAnswer:
    report = SEEN[name]
    judgement = summary_of_report(report, "reports/x.json", 1.0)
    return JudgedAnswer(judgement, report, REWARDS[preset](judgement))


def texts() -> dict[str, str]:
    found = {}
    for preset in FEEDBACK:
        for name in SEEN:
            found[f"{preset}-{name}"] = feedback(answer_of(name, preset), preset, 1200) + "\n"
    return found


@pytest.mark.parametrize("name", sorted(f"{p}-{n}" for p in FEEDBACK for n in SEEN))
def test_feedback_equals_its_golden_text(name):
    assert (GOLDEN / f"{name}.txt").read_text(encoding="utf-8") == texts()[name]


@pytest.mark.parametrize("name", sorted(texts()))
def test_feedback_reveals_no_seed_tolerance_or_folder(name):
    text = texts()[name]
    for secret in ("0123456789abcdef", "/tmp/", "/usr/", "allowed one", "tolerance", "float64"):
        assert secret not in text
    assert ("reward" in text) == name.startswith("released_code")


def test_feedback_to_a_reply_without_code_names_what_is_missing():
    summary = EvalSummary(protocol="strict", verdict="failed", reason="there is no code block")
    assert "there is no code block" in feedback(
        JudgedAnswer(summary, None, 0.0), "tilewright", 1200
    )


@given(st.sampled_from(sorted(SEEN)), st.sampled_from(sorted(FEEDBACK)), st.integers(25, 2000))
def test_feedback_stays_within_its_token_budget(name, preset, tokens):
    assert len(feedback(answer_of(name, preset), preset, tokens)) <= tokens * CHARACTERS_PER_TOKEN


def test_a_long_traceback_keeps_its_beginning_and_end():
    message = "ValueError: first\n" + "frame\n" * 5000 + "last line"
    report = reports.report(Failed(stage="load", reason="exception", message=message))
    judgement = summary_of_report(report, "", 1.0)
    text = feedback(JudgedAnswer(judgement, report, 0.0), "tilewright", 200)
    assert "ValueError: first" in text
    assert text.endswith("last line")


def test_the_verdict_is_cut_last():
    assert feedback(answer_of("correct"), "tilewright", 40).startswith("Verdict: correct.")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("in /tmp/candidate/a.py:3", "in a.py:3"),
        ("a/b and 3/4 stay", "a/b and 3/4 stay"),
        ("error 5.2e+05 times the allowed one", "error 5.2e+05 times the allowed one"),
        ("0.5, got 0; error 5.2e+05 times the allowed one; 3 of 4", "0.5, got 0; 3 of 4"),
        ("key deadbeefdeadbeef01", "key [...]"),
    ],
)
def test_paths_and_secrets_are_redacted(text, wanted):
    assert redacted(text) == wanted


if __name__ == "__main__":
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for name, text in texts().items():
        (GOLDEN / f"{name}.txt").write_text(text, encoding="utf-8")
