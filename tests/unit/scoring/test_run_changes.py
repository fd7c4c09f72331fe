"""The changes between two runs: which there are, and when a speed-up has changed."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.search_turns import judged
from tilewright.records.events import Ask
from tilewright.scoring.run_changes import (
    REGRESSIONS,
    Change,
    Standing,
    changes,
    standings,
)


def standing(verdict="correct", speedup=None, error=0.05):
    low, high = (speedup and speedup * (1 - error)), (speedup and speedup * (1 + error))
    return Standing("a", verdict, "", speedup, low, high)


def only(before, after, **options):
    (row,) = changes({"p": before} if before else {}, {"p": after} if after else {}, **options)
    return row


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        (standing("incorrect"), standing(), Change.BECAME_CORRECT),
        (standing(), standing("failed"), Change.BROKE),
        (standing(), standing("unjudged"), Change.UNJUDGED),
        (standing("failed"), standing("unjudged"), Change.UNJUDGED),
        (standing("unjudged"), standing("unjudged"), Change.SAME),
        (standing("unjudged"), standing("failed"), Change.SAME),
        (standing("unjudged"), standing(), Change.BECAME_CORRECT),
        (standing("failed"), standing("incorrect"), Change.SAME),
        (None, standing("failed"), Change.ADDED),
        (standing("failed"), None, Change.REMOVED),
        (standing(speedup=1.0), standing(speedup=1.5), Change.FASTER),
        (standing(speedup=1.5), standing(speedup=1.0), Change.SLOWER),
        (standing(speedup=1.0), standing(speedup=1.04), Change.SAME),
        (standing(speedup=1.0), standing(), Change.SAME),
    ],
)
def test_each_change_is_named(before, after, change):
    assert only(before, after).change == change


def test_times_of_two_devices_are_not_compared():
    row = only(standing(speedup=1.0), standing(speedup=9.0), timed=False)
    assert (row.change, row.ratio) == (Change.SAME, None)
    assert only(standing(), standing("failed"), timed=False).change == Change.BROKE


@given(st.floats(0.1, 10), st.floats(0.1, 10), st.floats(0.001, 0.5), st.floats(0.001, 0.5))
def test_the_interval_is_that_of_two_independent_estimates(one, two, error, other):
    row = only(standing(speedup=one, error=error), standing(speedup=two, error=other))
    assert row.ratio == pytest.approx(two / one)
    assert row.low < row.ratio < row.high
    back = only(standing(speedup=two, error=other), standing(speedup=one, error=error))
    assert back.low == pytest.approx(1 / row.high)
    # No narrower than the wider of both, and no wider than both together.
    widths = [math.log1p(error), -math.log1p(-error), math.log1p(other), -math.log1p(-other)]
    assert math.log(row.high / row.ratio) <= sum(widths)
    assert math.log(row.high / row.ratio) >= max(math.log1p(other), -math.log1p(-error)) * 0.999


def test_the_worst_changes_come_first():
    before = {"a": standing(), "b": standing("failed"), "c": standing(speedup=2.0)}
    after = {"a": standing("failed"), "b": standing(), "c": standing(speedup=1.0)}
    assert [row.problem for row in changes(before, after)] == ["a", "c", "b"]
    assert Change.BECAME_CORRECT not in REGRESSIONS


def test_a_problem_stands_for_its_best_candidate():
    turns = [
        judged(Ask(id=f"p#{n}", problem="p"), f"x = {n}", verdict, speedup)
        for n, (verdict, speedup) in enumerate(
            [("failed", None), ("correct", 1.0), ("correct", 1.3), ("incorrect", None)]
        )
    ]
    assert standings(turns, "strict")["p"].candidate == "p#2"
    assert standings(turns[:1], "strict")["p"].verdict == "failed"
    assert standings(turns, "official") == {}
