"""Random: numbers that are uniform over a space, and only there."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from scipy import stats

from tilewright.errors import ConfigError
from tilewright.loop.strategies.base import Plan
from tilewright.loop.strategies.random import make

PROGRAMS = 420


def numbers(seed=0, turns=2_000, problem="spaces/cpp_matmul"):
    plan = Plan(problem=problem, turns=turns, seed=seed)
    asks = make(plan, lambda _: None).ask(turns)
    assert {(ask.role, ask.operator, ask.shown_turns) for ask in asks} == {
        ("propose", "random", ())
    }
    return [int(re.fullmatch(r"Write program number (\d+) .*", ask.instruction)[1]) for ask in asks]


def test_the_programs_of_a_space_are_equally_likely():
    seen = Counter(number % PROGRAMS for seed in range(20) for number in numbers(seed))
    assert len(seen) == PROGRAMS
    assert stats.chisquare(list(seen.values())).pvalue > 0.01


def test_equal_seeds_ask_for_equal_programs_and_others_for_others():
    assert numbers(1) == numbers(1)
    assert not set(numbers(1)) & set(numbers(2))


def test_a_problem_that_is_no_space_is_refused():
    with pytest.raises(ConfigError, match="no space of programs"):
        numbers(problem="bundled/softmax")


def test_it_has_no_options():
    with pytest.raises(ConfigError, match="tau"):
        make(Plan(problem="spaces/x", options={"tau": 1}), lambda _: None)
