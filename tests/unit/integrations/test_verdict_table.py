"""The published table of verdicts: each report has a row, and no cell promotes a verdict."""

from __future__ import annotations

import pytest

from tests import sample_reports as reports
from tilewright.integrations.verdict_table import TABLE, Ours, row_of
from tilewright.records import Correct, Failed

ROWS = [
    (reports.correct(), Ours.CORRECT_TIMED),
    (reports.report(Correct()), Ours.CORRECT_NOT_TIMED),
    (reports.incorrect(), Ours.INCORRECT),
    (reports.failed("build"), Ours.FAILED_BUILD),
    (reports.failed("load"), Ours.FAILED_BUILD),
    (reports.failed_constructor("RuntimeError"), Ours.FAILED_CONSTRUCTOR),
    (reports.failed_constructor("NotImplementedError"), Ours.FAILED_CONSTRUCTOR),
    (reports.failed_constructor("TypeError"), Ours.FAILED_BUILD),
    (reports.failed("construct"), Ours.FAILED_BUILD),
    (reports.failed("correctness"), Ours.FAILED_RUN),
    (reports.failed("timing"), Ours.FAILED_RUN),
    (
        reports.report(Failed(stage="correctness", reason="timeout", message="20 s")),
        Ours.FAILED_TIME,
    ),
    (reports.report(Failed(stage="build", reason="timeout", message="180 s")), Ours.FAILED_BUILD),
    (reports.rejected(), Ours.REJECTED),
    (reports.unjudged(), Ours.UNJUDGED),
]


@pytest.mark.parametrize(("report", "row"), ROWS)
def test_each_report_has_its_row(report, row):
    assert row_of(report) == row


def test_the_table_has_every_row():
    assert set(TABLE) == set(Ours) == {row for _, row in ROWS}


@pytest.mark.parametrize("row", Ours)
def test_only_a_correct_candidate_is_a_success_of_any_tool(row):
    correct = row in (Ours.CORRECT_TIMED, Ours.CORRECT_NOT_TIMED)
    cell = TABLE[row]
    assert cell.kernelbench.correctness == correct
    assert cell.kernelbench.timed == (row is Ours.CORRECT_TIMED)
    assert cell.kernelbench.raises == (row is Ours.UNJUDGED)
    assert (cell.pytest.ends == "as required") == correct
    assert (cell.pytest.ends == "skipped") == (row is Ours.UNJUDGED)


def test_each_refusal_of_kernelbench_names_where_the_reason_is():
    for row, cell in TABLE.items():
        told = bool(cell.kernelbench.metadata)
        assert told == (not cell.kernelbench.correctness and not cell.kernelbench.raises), row
