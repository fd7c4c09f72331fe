"""TWOSOME's probabilities: the fixture in three modes, and properties of the softmax."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tilewright.loop.choices import most_likely, sampled, sentence_scores, softmax

LOGPROBS = ((-0.1, -0.2, -0.3), (-0.05, -0.4), (-1.0,))
SENTENCES = ("retile the kernel now", "fuse both", "stop")
SCORES = st.lists(st.floats(-200, 0), min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("rule", "wanted"),
    [("sum", (0.3531, 0.4102, 0.2367)), ("token", (0.4124, 0.4022, 0.1853))],
)
def test_the_fixture_flips_the_preferred_sentence(rule, wanted):
    found = softmax(sentence_scores(LOGPROBS, SENTENCES, rule))
    assert found == pytest.approx(wanted, abs=1e-4)
    assert most_likely(found) == (1 if rule == "sum" else 0)


def test_the_rule_word_divides_by_words():
    scores = sentence_scores(LOGPROBS, SENTENCES, "word")
    assert scores == pytest.approx((-0.6 / 4, -0.45 / 2, -1.0))
    weights = [math.exp(-0.15), math.exp(-0.225), math.exp(-1.0)]
    assert softmax(scores) == pytest.approx([weight / sum(weights) for weight in weights])


@given(SCORES)
def test_probabilities_add_up_and_keep_the_order_of_scores(scores):
    found = softmax(scores)
    assert sum(found) == pytest.approx(1.0)
    assert found[scores.index(max(scores))] == max(found)
    assert softmax([score - 500 for score in scores]) == pytest.approx(found)


@given(SCORES, st.integers(0, 7))
def test_the_softmax_has_the_gradient_of_a_finite_difference(scores, place):
    place %= len(scores)
    found, step = softmax(scores), 1e-6
    moved = [score + step * (number == place) for number, score in enumerate(scores)]
    for number, (before, after) in enumerate(zip(found, softmax(moved), strict=True)):
        exact = before * ((number == place) - found[place])
        assert (after - before) / step == pytest.approx(exact, abs=1e-5)


def test_sampling_follows_the_probabilities():
    wanted = (0.5, 0.3, 0.2)
    seen = Counter(sampled(wanted, random.Random(seed)) for seed in range(10_000))
    expected = [share * 10_000 for share in wanted]
    assert stats.chisquare([seen[place] for place in range(3)], expected).pvalue > 0.01
