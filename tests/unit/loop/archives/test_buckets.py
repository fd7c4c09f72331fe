"""Buckets against CUDA-L1's rules: the fixture, exact probabilities, limits, and few candidates."""

from __future__ import annotations

import math
import random
from collections import Counter
from itertools import pairwise, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tilewright.loop.archives.buckets import Buckets, best, chances, contrasting, uniform

MEANS = (0.9, 1.1, 1.6, 2.4)
SCORES = st.floats(0.01, 100.0)


def filled(scores, delta=0.1):
    archive = Buckets(delta)
    for number, score in enumerate(scores):
        archive.put(f"c{number}", score)
    return archive


def test_the_first_draw_has_the_probabilities_of_the_fixture():
    assert chances(MEANS, 0.5) == pytest.approx((0.0375, 0.0560, 0.1523, 0.7542), abs=5e-5)


def test_the_default_temperature_is_the_spread_of_the_means_with_a_floor():
    spread = math.sqrt(sum((mean - 1.5) ** 2 for mean in MEANS) / 4)
    assert chances(MEANS, None) == pytest.approx(chances(MEANS, spread))
    assert chances((1.0, 1.01), None) == pytest.approx(chances((1.0, 1.01), 0.1))


def test_pairs_have_the_probabilities_of_draws_without_replacement():
    archive, first = filled(MEANS), chances(MEANS, 0.5)
    exact = {(i, j): first[i] * first[j] / (1 - first[i]) for i, j in permutations(range(4), 2)}
    assert sum(exact.values()) == pytest.approx(1.0)
    draws = 40_000
    seen = Counter(
        tuple(int(name[1:]) for name in contrasting(archive, 2, 0.5, random.Random(seed)))
        for seed in range(draws)
    )
    pairs = sorted(exact)
    found = stats.chisquare([seen[pair] for pair in pairs], [exact[pair] * draws for pair in pairs])
    assert sum(seen[pair] for pair in pairs) == draws
    assert found.pvalue > 0.01


def test_a_draw_is_uniform_inside_a_bucket():
    archive = filled([2.0 + 0.001 * number for number in range(8)])
    assert len(archive.buckets()) == 1
    seen = Counter(contrasting(archive, 1, None, random.Random(seed)) for seed in range(8_000))
    assert len(seen) == 8
    assert stats.chisquare(list(seen.values())).pvalue > 0.01


@given(st.integers(0, 1000))
def test_a_small_temperature_takes_the_fastest_buckets(seed):
    assert contrasting(filled(MEANS), 2, 1e-6, random.Random(seed)) == ("c3", "c2")
    assert contrasting(filled(MEANS), 4, 1e-300, random.Random(seed)) == ("c3", "c2", "c1", "c0")


def test_a_large_temperature_takes_all_buckets_alike():
    assert chances(MEANS, 1e9) == pytest.approx([0.25] * 4)
    archive = filled(MEANS)
    seen = Counter(contrasting(archive, 1, 1e9, random.Random(seed)) for seed in range(8_000))
    assert stats.chisquare(list(seen.values())).pvalue > 0.01


@given(st.lists(SCORES, max_size=30), st.integers(1, 5), st.integers())
def test_exemplars_come_from_different_buckets_while_there_are_some(scores, count, seed):
    archive = filled(scores)
    taken = contrasting(archive, count, None, random.Random(seed))
    assert len(set(taken)) == len(taken) == min(count, len(scores))
    place = {name: bucket.place for bucket in archive.buckets() for name in bucket.members}
    assert len({place[name] for name in taken}) == min(count, len(archive.buckets()))


@given(st.lists(SCORES, max_size=30), st.floats(0.01, 2.0))
def test_buckets_partition_the_candidates_by_score(scores, delta):
    archive = filled(scores, delta)
    buckets = archive.buckets()
    assert sorted(name for item in buckets for name in item.members) == sorted(archive.names())
    for bucket in buckets:
        own = [scores[int(name[1:])] for name in bucket.members]
        assert bucket.mean == pytest.approx(sum(own) / len(own))
        for score in own:
            assert bucket.place <= math.log2(score) / delta < bucket.place + 1
    assert all(before.place < after.place for before, after in pairwise(buckets))


@given(st.lists(st.tuples(st.integers(0, 5), st.none() | SCORES), max_size=30))
def test_the_last_score_of_a_candidate_counts(changes):
    archive, last = Buckets(0.1), {}
    for number, score in changes:
        if score is None:
            archive.drop(f"c{number}")
            last.pop(f"c{number}", None)
        else:
            archive.put(f"c{number}", score)
            last[f"c{number}"] = score
    assert set(archive.names()) == set(last)
    assert len(archive) == len(last)
    assert {name for item in archive.buckets() for name in item.members} == set(last)
    ranked = archive.worst_first(archive.names())
    assert [last[name] for name in ranked] == sorted(last.values())


def test_best_takes_the_fastest_and_of_equal_ones_the_earlier():
    archive = filled([1.0, 3.0, 2.0, 3.0])
    assert best(archive, 2) == ("c1", "c3")
    assert best(archive, 9) == ("c1", "c3", "c2", "c0")


def test_uniform_ignores_the_score():
    archive = filled(MEANS)
    seen = Counter(uniform(archive, 1, random.Random(seed)) for seed in range(8_000))
    assert stats.chisquare(list(seen.values())).pvalue > 0.01
    assert len(uniform(archive, 9, random.Random(0))) == 4


def test_a_score_without_a_logarithm_is_refused():
    with pytest.raises(ValueError, match="not positive"):
        Buckets(0.1).put("c0", 0.0)
