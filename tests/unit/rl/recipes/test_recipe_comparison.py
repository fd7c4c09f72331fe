"""A comparison of recipes: equal numbers of programs, means of seeds, and what is resolved."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.rl.recipes.recipe_comparison import (
    JudgedStep,
    MeanOfSeeds,
    SeedSteps,
    equal_programs,
    highest,
    mean_of_seeds,
)


def seed(*programs: int, **figures: tuple[float | None, ...]) -> SeedSteps:
    steps = [
        JudgedStep({name: values[place] for name, values in figures.items()}, count)
        for place, count in enumerate(programs)
    ]
    return SeedSteps(tuple(steps))


def test_each_seed_counts_until_it_had_as_many_programs_as_the_shortest_one():
    long, short = seed(10, 10, 10, correct=(0.1, 0.2, 0.9)), seed(12, 12, correct=(0.3, 0.5))
    assert equal_programs({"a": [long], "b": [short, SeedSteps(())]}) == 24
    assert mean_of_seeds([long], "correct", 24, 1) == MeanOfSeeds(0.2, None, None)
    assert mean_of_seeds([short], "correct", 24, 2) == MeanOfSeeds(0.4, None, None)


def test_the_interval_is_that_of_student_over_seeds():
    found = [seed(4, correct=(value,)) for value in (0.1, 0.2, 0.3)]
    mean = mean_of_seeds(found, "correct", 4, 1)
    assert mean is not None
    # 4.303 is Student's quantile for two degrees of freedom; the standard deviation is 0.1.
    assert mean.mean == pytest.approx(0.2)
    assert mean.high == pytest.approx(0.2 + 4.303 * 0.1 / 3**0.5)
    # A share is not below 0.
    assert str(mean) == "0.200 [0.000, 0.448]"


def test_equal_seeds_show_no_spread_and_so_no_interval():
    equal = [seed(4, correct=(0.25,)), seed(4, correct=(0.25,))]
    assert mean_of_seeds(equal, "correct", 4, 1) == MeanOfSeeds(0.25, None, None)


def test_a_figure_that_no_step_has_is_not_measured():
    assert mean_of_seeds([seed(4, correct=(None,))], "correct", 4, 1) is None
    assert mean_of_seeds([seed(4, correct=(0.5,))], "coverage", 4, 1) is None
    assert mean_of_seeds([seed(40, correct=(0.5,))], "correct", 4, 1) is None


def test_only_an_interval_above_all_others_is_the_highest():
    low, high = MeanOfSeeds(0.2, 0.1, 0.3), MeanOfSeeds(0.6, 0.5, 0.7)
    assert highest({"a": low, "b": high}) == "b"
    assert highest({"a": low, "b": high, "c": None}) is None
    assert highest({"a": low, "b": MeanOfSeeds(0.4, 0.29, 0.5)}) is None
    assert highest({"a": MeanOfSeeds(0.2, None, None), "b": high}) is None


@given(st.lists(st.integers(0, 50), max_size=8), st.integers(0, 200))
def test_the_steps_within_a_number_of_programs_are_as_many_as_fit(programs, limit):
    steps = SeedSteps(tuple(JudgedStep({}, count) for count in programs))
    found = steps.until(limit)
    spent = sum(step.programs for step in found)
    assert steps.steps[: len(found)] == found
    assert spent <= limit
    if len(found) < len(programs):
        assert spent + programs[len(found)] > limit
