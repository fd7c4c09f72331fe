"""Metrics against published fixtures, and the laws that they obey."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.records.events import EvalSummary
from tilewright.scoring.benchmarks.kernelbench_x import call_and_execute
from tilewright.scoring.metrics import (
    Score,
    amsr,
    best_so_far,
    bootstrap_interval,
    explained_deviance,
    fast_at_k,
    fast_p,
    fast_p_at_least,
    fast_p_believed,
    geometric_mean,
    mean_with_zeros,
    pass_at_k,
    ratio_of_sums,
    rejected_share,
)

FAIL = Score(ok=False)
FIXTURE = [Score(True, 2.0), Score(True, 0.5), Score(True, 1.0), FAIL, Score(True, 3.0)]
"""The fixture that every metrics module must reproduce (specs: notation)."""
SCORES = st.lists(
    st.builds(
        Score,
        ok=st.booleans(),
        speedup=st.none() | st.floats(0.01, 100),
        low=st.none() | st.floats(0.01, 100),
        rejected=st.booleans(),
    ),
    min_size=1,
    max_size=30,
)


def test_the_published_fixture():
    assert fast_p(FIXTURE, 1) == pytest.approx(0.40)
    assert fast_p_at_least(FIXTURE, 1) == pytest.approx(0.60)
    assert mean_with_zeros(FIXTURE) == pytest.approx(1.30)
    assert amsr(FIXTURE) == pytest.approx(1.20)
    assert geometric_mean(FIXTURE) == pytest.approx(3 ** (1 / 4))
    assert ratio_of_sums([1, 10], [2, 5]) == pytest.approx(11 / 7)


def test_a_failure_on_one_size_gives_no_speedup():
    assert ratio_of_sums([1, 10], [2, None]) is None
    with pytest.raises(ValueError, match="2 times"):
        ratio_of_sums([1, 10], [2])


def test_an_untimed_correct_candidate_is_right_and_not_fast():
    untimed = [Score(True), FAIL]
    assert fast_p(untimed, 0) == 0.5
    assert fast_p(untimed, 0.5) == 0.0
    assert geometric_mean(untimed) is None
    # Zeros alone would say that it is slow.
    assert mean_with_zeros(untimed) is amsr(untimed) is None
    assert mean_with_zeros([FAIL]) == amsr([FAIL]) == 0.0
    assert mean_with_zeros([Score(True), Score(True, 2.0), FAIL]) == 1.0
    assert mean_with_zeros([Score(True)]) is None
    assert amsr([Score(True)]) is None


def test_only_an_interval_entirely_above_counts_as_faster():
    scores = [Score(True, 1.3, 1.1), Score(True, 1.3, 0.9), Score(True, 1.3), FAIL]
    assert fast_p(scores, 1) == 0.75
    assert fast_p_believed(scores, 1) == 0.25


def test_hacks_are_counted_among_all():
    assert rejected_share([Score(False, rejected=True), FAIL, *FIXTURE[:2]]) == 0.25


@pytest.mark.parametrize(
    "metric", [fast_p_believed, fast_p, fast_p_at_least], ids=lambda item: item.__name__
)
def test_a_share_of_no_scores_is_refused(metric):
    with pytest.raises(ValueError, match="no scores"):
        metric([], 1)


@given(SCORES, st.floats(0, 10), st.floats(0, 10))
def test_a_higher_threshold_is_passed_by_no_more(scores, a, b):
    low, high = sorted((a, b))
    for metric in (fast_p, fast_p_at_least, fast_p_believed):
        assert metric(scores, high) <= metric(scores, low)
    assert fast_p(scores, low) <= fast_p_at_least(scores, low)


@given(st.integers(1, 12), st.data())
def test_pass_at_k_is_the_share_of_all_draws(samples, data):
    right, k = data.draw(st.integers(0, samples)), data.draw(st.integers(1, min(samples, 4)))
    drawn = list(itertools.combinations([True] * right + [False] * (samples - right), k))
    assert pass_at_k(samples, right, k) == pytest.approx(sum(map(any, drawn)) / len(drawn))


def test_fast_at_k_asks_for_speed_too():
    assert fast_at_k(FIXTURE, 1, 1) == pytest.approx(0.4)
    assert fast_at_k(FIXTURE, 1, 5) == 1.0
    with pytest.raises(ValueError, match="pass@6"):
        fast_at_k(FIXTURE, 1, 6)


@given(SCORES)
def test_the_best_so_far_never_gets_worse(turns):
    best = best_so_far(turns)
    assert len(best) == len(turns)
    speeds = [item.speedup or 0.0 if item else -1.0 for item in best]
    assert speeds == sorted(speeds)
    assert all(item is None or item.ok for item in best)


def test_explained_deviance_is_one_or_zero_at_the_extremes():
    outcomes = [True, True, False, False]
    assert explained_deviance(outcomes, ["a", "a", "b", "b"]) == pytest.approx(1.0)
    assert explained_deviance(outcomes, ["a", "b", "a", "b"]) == pytest.approx(0.0)
    assert explained_deviance([True, True], ["a", "b"]) == 0.0
    # By hand: 3 of 4 against 1 of 4; D0 = 16 ln 2, D1 = 2 * 2 * (4 ln 4 - 3 ln 3).
    some = explained_deviance([True] * 3 + [False] * 4 + [True], ["a"] * 4 + ["b"] * 4)
    assert some == pytest.approx(0.1887, abs=1e-4)


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("abc")), min_size=1, max_size=40))
def test_explained_deviance_is_a_share(pairs):
    outcomes, groups = zip(*pairs, strict=True)
    assert -1e-9 <= explained_deviance(outcomes, groups) <= 1 + 1e-9


def test_the_bootstrap_resamples_problems_and_not_samples():
    assert bootstrap_interval([(100, 100), (0, 100)]) == (0.0, 1.0)
    many = [(fast_p([item], 1), 1) for item in FIXTURE * 40]
    low, high = bootstrap_interval(many)
    assert 0.30 < low < 0.40 < high < 0.50
    assert (low, high) == bootstrap_interval(many)
    with pytest.raises(ValueError, match="no problems"):
        bootstrap_interval([])


def test_call_and_execute_accuracy_are_counted_apart_and_sums_are_divided():
    def said(verdict: str, reference: float | None = None, candidate: float | None = None):
        times = {"reference_us": reference, "candidate_us": candidate}
        return EvalSummary(protocol="official", verdict=verdict, **times)

    judged = [
        ("kernelbenchx/Math/a", said("correct", 11.0, 7.0)),
        ("kernelbenchx/Math/b", said("correct", 10.0, 20.0)),
        ("kernelbenchx/Math/c", said("correct", 1.0, 101.0)),
        ("kernelbenchx/Math/d", said("incorrect")),
        ("kernelbenchx/Math/e", said("failed")),
        ("kernelbenchx/Math/f", said("unjudged")),
        ("tritonbench/t/a", said("correct", 10.0, 1.0)),
        ("kernelbench/level1-1", said("correct", 2.0, 1.0)),
    ]
    found = call_and_execute(judged)
    assert list(found) == ["kernelbenchx", "tritonbench/t"]
    numbers = found["kernelbenchx"]
    assert (numbers["tasks"], numbers["timed"], numbers["abnormal"]) == (5, 3, 1)
    assert numbers["call_accuracy"] == pytest.approx(4 / 5)
    assert numbers["execute_accuracy"] == pytest.approx(3 / 5)
    assert numbers["speedup_global"] == pytest.approx(21 / 27)
    assert numbers["speedup_per_task"] == pytest.approx((11 / 7 + 1 / 2) / 2)
    assert found["tritonbench/t"]["abnormal"] == 1
    assert found["tritonbench/t"]["speedup_global"] is None
