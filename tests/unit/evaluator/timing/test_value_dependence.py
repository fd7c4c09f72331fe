"""A candidate that is slower on input variations alone gets a label, and keeps no gain by it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.evaluator.timing.test_case_timings import compared, times
from tilewright.evaluator.timing.case_timings import CaseTimes
from tilewright.evaluator.timing.value_dependence import share_of_gain, value_labels
from tilewright.records.codes import LabelName

CALLS, VARIED = 40, 8
"""Calls on nominal inputs, and on a variation."""


def varied(ours: float, theirs: float = 1.0, ratio: float = 2.0, calls: int = VARIED) -> CaseTimes:
    """Return times whose calls on a variation take so many times as long as on nominal inputs."""
    made = times([ratio * 1e-3] * CALLS, [1e-3] * CALLS)
    made.varied["candidate"] = [("uneven", ours * 1e-3)] * calls
    made.varied["eager"] = [("uneven", theirs * ratio * 1e-3)] * calls
    return made


def test_a_label_names_the_variation():
    (label,) = value_labels(varied(3.0))
    assert label.name == LabelName.VALUE_DEPENDENT_TIME
    assert "uneven: 3.0 times as long" in label.detail


@pytest.mark.parametrize(
    ("ours", "theirs", "calls", "share"),
    [(1.4, 1.0, 8, 1.0), (3.0, 2.0, 8, 56 / 64), (3.0, 3.0, 8, 1.0), (3.0, 1.0, 1, 41 / 43)],
)
def test_no_label_names_little_more_time_a_slow_baseline_or_a_single_call(
    ours, theirs, calls, share
):
    made = varied(ours, theirs, calls=calls)
    assert value_labels(made) == []
    assert share_of_gain(made, "eager") == pytest.approx(share)


def test_work_that_was_moved_into_varied_calls_makes_no_gain():
    # Without the move each call would take 2 ms, as the baseline's do.
    moved = varied((CALLS + 2 * VARIED) / VARIED)
    assert share_of_gain(moved, "eager") == pytest.approx(0.5)
    plain, item = compared(varied(1.0)), compared(moved)
    assert item.speedup == plain.speedup
    assert item.speedup_low == pytest.approx(1.0)
    assert item.conclusion == "no measurable difference"
    assert item.labels == (LabelName.WORK_OF_OTHER_CALLS,)


def test_the_work_of_many_calls_in_one_varied_call_makes_no_gain():
    moved = varied(1.0)
    moved.varied["candidate"][3] = ("uneven", (CALLS + VARIED + 1) * 1e-3)
    assert value_labels(moved) == []
    assert share_of_gain(moved, "eager") == pytest.approx(0.5)


@given(st.floats(0.1, 10.0), st.floats(0.1, 50.0))
def test_it_denies_a_gain_and_shows_no_loss(ratio, ours):
    plain, item = compared(varied(1.0, ratio=ratio)), compared(varied(ours, ratio=ratio))
    assert min(plain.speedup_low, 1.0) <= item.speedup_low <= plain.speedup_low
    assert item.conclusion in (plain.conclusion, "no measurable difference")
