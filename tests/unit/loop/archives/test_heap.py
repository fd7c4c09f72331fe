"""The memory of POLCA: priorities, stale and fresh ones, copies, limits."""

from __future__ import annotations

import math

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.loop.archives.heap import (
    Copy,
    CorrectedHeap,
    FaithfulHeap,
    MemoryRules,
    mean,
    priority_of,
    ucb,
    with_best_mean,
)

SCORES = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=300)


def copies(*scores):
    return [
        Copy(f"p{number}", f"w{number}", number, scores=list(found), trials=["t"] * len(found))
        for number, found in enumerate(scores)
    ]


def test_the_upper_confidence_bound_has_the_values_of_the_fixture():
    assert ucb([0.2, 0.4], 0, 1.0, 0.0, 1.0) == pytest.approx(0.3 + math.sqrt(math.log(2) / 2))
    assert ucb([0.2, 0.4], 0, 1.0, 0.0, 1.0) == pytest.approx(0.8887, abs=1e-4)
    assert ucb([0.2, 0.4], 3, 1.0, 0.0, 1.0) == 1.0
    assert ucb([], 3, 1.0, 0.0, 1.0) == 1.0


@given(SCORES)
def test_the_mean_has_the_bits_of_numpy(scores):
    assert mean(scores) == float(numpy.mean(scores))


@given(SCORES, st.integers(0, 50), st.floats(0, 2))
def test_the_bound_lies_between_the_mean_and_the_top(scores, iterations, kappa):
    bound = ucb(scores, iterations, kappa, 0.0, 1.0)
    assert min(mean(scores), 1.0) <= bound <= 1.0


def test_the_age_of_a_program_may_be_its_priority():
    old, new = copies([0.9], [0.1])
    for priority, first in (("oldest", old), ("newest", new)):
        rules = MemoryRules(priority=priority)
        assert max((old, new), key=lambda copy: priority_of(copy, rules, 1)) is first


def stored(rules, found, kind=FaithfulHeap):
    memory = kind(rules)
    memory.end_trials()
    memory.store(found)
    return memory


def test_the_best_program_is_explored_and_stays_so_that_it_may_be_there_twice():
    memory = stored(MemoryRules(priority="newest"), copies([0.9], [0.1], [0.2]))
    chosen = memory.choose(2, use_best=True)
    assert [copy.program for copy in chosen] == ["p0", "p2"]
    assert [copy.program for copy in memory.members()] == ["p0", "p1"] or {
        copy.program for copy in memory.members()
    } == {"p0", "p1"}
    memory.end_trials()
    memory.store(chosen)
    assert sorted(copy.program for copy in memory.members()) == ["p0", "p0", "p1", "p2"]


def test_a_stored_copy_gets_no_later_trials():
    (copy,) = copies([0.5])
    memory = stored(MemoryRules(), [copy])
    copy.scores.append(1.0)
    assert memory.members()[0].scores == [0.5]


def test_a_priority_is_that_of_the_moment_of_storing_or_with_corrected_rules_of_the_choice():
    rules = MemoryRules(priority="ucb", kappa=0.5)
    for kind, first in ((FaithfulHeap, ["p1"]), (CorrectedHeap, ["p0"])):
        early, late = copies([0.30], [0.28, 0.28])
        memory = kind(rules)
        memory.end_trials()
        memory.store([early])
        for _ in range(30):
            memory.end_trials()
        memory.store([late])
        assert [copy.program for copy in memory.choose(1, use_best=False)] == first


def test_of_equal_priorities_the_newer_program_comes_first():
    memory = stored(MemoryRules(), copies([0.5], [0.5], [0.5]))
    taken = [copy.program for copy in memory.choose(3, use_best=False)]
    assert taken == ["p2", "p1", "p0"]


def test_a_full_memory_drops_the_last_place_of_its_array_and_with_corrected_rules_the_worst():
    found = copies([0.9], [0.5], [0.8])
    rules = MemoryRules(size=2)
    assert {c.program for c in stored(rules, found).members()} == {"p0", "p1"}
    assert {c.program for c in stored(rules, found, CorrectedHeap).members()} == {"p0", "p2"}


def test_a_short_term_memory_is_merged_when_it_is_time():
    memory = FaithfulHeap(MemoryRules(merge_every=2))
    memory.end_trials()
    memory.store(copies([0.1], [0.2]))
    assert len(memory.members()) == 2
    memory.end_trials()
    memory.store(copies([0.3]))
    assert len(memory.members()) == 3
    memory.end_trials()
    assert memory.members() == []


@given(st.lists(st.lists(st.floats(0, 1), max_size=3), min_size=1, max_size=20), st.integers(1, 6))
def test_a_choice_takes_what_it_returns_and_loses_nothing(scores, count):
    judged = sum(bool(found) for found in scores)
    memory = stored(MemoryRules(), copies(*scores))
    chosen = memory.choose(count, use_best=False)
    assert len(chosen) == min(count, judged)
    assert len(memory.members()) == judged - len(chosen)
    least = min((mean(copy.scores) for copy in chosen), default=0.0)
    assert all(mean(copy.scores) <= least for copy in memory.members())


def test_a_corrected_memory_pools_the_trials_of_a_program():
    first, again = (
        Copy("p", "w0", 0, scores=[0.1], trials=["a"]),
        Copy("p", "w1", 1, scores=[0.3], trials=["b"]),
    )
    memory = stored(MemoryRules(), [first, again], CorrectedHeap)
    (kept,) = memory.choose(5, use_best=True)
    assert (kept.writer, kept.scores, kept.trials) == ("w0", [0.1, 0.3], ["a", "b"])
    assert memory.members() == []


def test_the_best_of_nothing_is_nothing():
    assert with_best_mean([]) is None
