"""The short view of a report answers three questions on one screen."""

from __future__ import annotations

import pytest

from tests import sample_reports as reports
from tilewright.cli.render import to_text
from tilewright.cli.render_answers import MAX_LINES, answers_view
from tilewright.records import EvalReport, Finding, Label, LoopRemark, OperatorUse

QUESTIONS = (
    "What is the verdict, and why?",
    "How fast is it, and how sure is that?",
    "What limits it, and what can be tried?",
)
SCRIPT = "It shows the failure with plain torch.\npython runs/1/reproduce.py"


def crowded() -> EvalReport:
    """Return a report with more of everything than a screen holds."""
    text = "a long text about one of many things that somebody has to know " * 12
    finding = Finding(check="x", code="unused_kernel", summary=text, weight="note", evidence={})
    cases = [reports.comparison(f"case {n}", 0.5, 0.02, us=100.0 + n) for n in range(40)]
    counts = {f"aten::{n}": 300 for n in range(5)}
    return reports.correct().model_copy(
        update={
            "findings": (finding,) * 30,
            "labels": tuple(Label(name="library_call", detail=text) for _ in range(30)),
            "comparisons": tuple(cases),
            "loops": tuple(LoopRemark(path="a.cpp", line=n + 1, reason=text) for n in range(20)),
            "operators": OperatorUse(case="case 39", counts=counts),
        }
    )


@pytest.mark.parametrize(
    "made",
    [
        reports.correct(),
        reports.incorrect(),
        reports.failed(),
        reports.rejected(),
        reports.unjudged(),
        crowded(),
    ],
    ids=["correct", "incorrect", "failed", "rejected", "unjudged", "crowded"],
)
def test_every_verdict_has_three_answers_on_one_screen(made):
    lines = to_text(answers_view(made, SCRIPT)).rstrip().splitlines()
    assert len(lines) <= MAX_LINES
    places = [lines.index(question) for question in QUESTIONS]
    assert places == sorted(places)
    answers = zip(places, [*places[1:], len(lines)], strict=True)
    assert all(any(lines[start + 1 : stop]) for start, stop in answers)


def test_an_interval_is_claimed_only_where_there_is_one():
    assert "The interval covers 95 %" in to_text(answers_view(reports.correct(), SCRIPT))
    bare = {"speedup_low": None, "speedup_high": None, "conclusion": "no interval"}
    cases = [item.model_copy(update=bare) for item in reports.correct().comparisons]
    official = {"comparisons": tuple(cases), "speedup_low": None, "speedup_high": None}
    text = to_text(answers_view(reports.correct().model_copy(update=official), SCRIPT))
    assert "covers 95 %" not in text
    assert "no interval" in text


def test_the_reproducer_is_named_only_for_a_failure():
    assert "reproduce.py" in to_text(answers_view(reports.incorrect(), SCRIPT))
    assert "reproduce.py" not in to_text(answers_view(reports.correct(), SCRIPT))


def test_a_failure_shows_its_whole_message_once():
    text = to_text(answers_view(reports.failed(), SCRIPT))
    assert text.count("ValueError: boom") == 1
    assert "fast.py:3 in add_relu: raise ValueError" in text
    lines = "\n".join(f"line {number}" for number in range(40))
    outcome = reports.failed().outcome.model_copy(update={"message": lines})
    long = to_text(answers_view(reports.failed().model_copy(update={"outcome": outcome}), SCRIPT))
    assert "line 6" in long
    assert "33 more; --full shows them." in long


def test_the_reason_of_a_rejection_is_told_once():
    made = reports.rejected()
    (finding,) = made.outcome.findings
    note = Finding(check="x", code="unused_kernel", summary="a note", weight="note", evidence={})
    made = made.model_copy(update={"findings": (note, note, finding)})
    text = to_text(answers_view(made, SCRIPT))
    assert text.count(finding.summary) == 1
    assert text.index(finding.summary) < text.index("a note")


def test_the_slowest_cases_are_shown_and_the_others_counted():
    text = to_text(answers_view(crowded(), SCRIPT))
    assert "case 39" in text
    assert "case 35" not in text
    assert "36 faster rows are not shown" in text
    assert "28 more; --full shows them." in text
