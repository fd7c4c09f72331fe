"""Calls of a coder that errs, against their closed forms."""

import random

import pytest

from tilewright.rl.choices.hierarchy import call_counts, expected_calls, played_calls


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize(("edits", "success"), [(1, 0.9), (3, 0.9), (5, 0.7), (8, 0.8)])
def test_played_calls_meet_the_closed_form_within_3_standard_errors(edits, success, at_once):
    found = call_counts(edits, success, at_once=at_once, runs=4000, seed=0)
    wanted = 1 / success**edits if at_once else edits / success
    assert found.expected == pytest.approx(wanted)
    assert abs(found.mean - wanted) <= 3 * found.error


def test_one_edit_costs_the_same_both_ways_and_several_cost_more_at_once():
    assert expected_calls(1, 0.8, at_once=True) == expected_calls(1, 0.8, at_once=False)
    assert expected_calls(8, 0.7, at_once=True) > expected_calls(8, 0.7, at_once=False)


def test_a_coder_without_errors_needs_one_call_an_edit_or_one_for_all():
    draw = random.Random(0)
    assert played_calls(4, 1.0, at_once=False, draw=draw) == 4
    assert played_calls(4, 1.0, at_once=True, draw=draw) == 1
