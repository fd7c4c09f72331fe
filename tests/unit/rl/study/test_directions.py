"""Effects between arms: paired by seed, with Student's interval."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tilewright.rl.study.directions import STUDENT_95, effect, last_value, next_seed


def arm(values):
    return {str(seed): {"figures": [{"x": 0.0}, {"x": value}]} for seed, value in enumerate(values)}


def test_the_quantiles_are_those_of_scipy():
    for place, value in enumerate(STUDENT_95, start=1):
        assert value == pytest.approx(stats.t.ppf(0.975, place), abs=6e-4)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=9))
def test_the_interval_is_that_of_a_paired_test(pairs):
    ours, theirs = [a for a, _ in pairs], [b for _, b in pairs]
    found = effect(arm(ours), arm(theirs), "x", 1)
    assert found.seeds == len(pairs)
    assert found.seen == pytest.approx(sum(a - b for a, b in pairs) / len(pairs))
    if len({a - b for a, b in pairs}) > 1:
        wanted = stats.ttest_rel(ours, theirs).confidence_interval(0.95)
        assert (found.low, found.high) == pytest.approx(tuple(wanted), abs=1e-3)


def test_an_effect_is_resolved_only_if_it_is_large_and_certain():
    assert effect(arm([0.5, 0.52, 0.48]), arm([0.1, 0.1, 0.1]), "x", 1).is_resolved
    # Certain, but below 10 points.
    assert not effect(arm([0.15, 0.16, 0.14]), arm([0.1, 0.1, 0.1]), "x", 1).is_resolved
    # Large, but not certain.
    assert not effect(arm([0.9, 0.0, 0.4]), arm([0.1, 0.1, 0.1]), "x", 1).is_resolved
    assert not effect(arm([0.9]), arm([0.1]), "x", 1).is_resolved


def test_only_seeds_of_both_arms_count():
    assert effect(arm([0.5, 0.6, 0.7]), arm([0.1]), "x", 1).seeds == 1
    assert effect(arm([]), arm([0.1]), "x", 1).seen is None


def test_the_last_steps_are_averaged_and_unknown_values_left_out():
    figures = [{"x": 9.0}, {"x": 1.0}, {"x": None}, {"x": 3.0}]
    assert last_value(figures, "x", 3) == pytest.approx(2.0)
    assert last_value(figures, "y", 3) is None


def test_one_more_seed_lies_in_its_prediction_interval_as_often_as_promised():
    draws = random.Random(0)
    inside = 0
    for _ in range(2000):
        *known, more = [draws.gauss(0.5, 0.1) for _ in range(6)]
        low, high = next_seed(arm(known), "x", 1)
        inside += low <= more <= high
    assert inside / 2000 == pytest.approx(0.95, abs=0.015)


def test_one_seed_predicts_nothing():
    assert next_seed(arm([0.5]), "x", 1) is None
    assert next_seed(arm([0.5, 0.6]), "y", 1) is None
