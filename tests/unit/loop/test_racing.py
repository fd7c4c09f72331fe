"""Races: sampling, the bound of the error, ties, limits, and lost or failed trials."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.loop.test_history import judged
from tilewright.loop.estimates import Trial
from tilewright.loop.racing import (
    MIN_SPREAD,
    Contender,
    Race,
    RaceRules,
    next_trials,
    outcome,
    spread,
    with_trial,
)

RULES = RaceRules()


def contender(name, *values, error=0.007, **more):
    return Contender(name, tuple(values), (error,) * len(values), **more)


def raced(means, deviation, rules, seed, stated=1.0):
    """Return the outcome of a simulated race, and its trials."""
    draw = random.Random(seed)
    found = {str(place): Contender(str(place)) for place in range(len(means))}
    while names := next_trials(list(found.values()), rules):
        for name in names:
            trial = Trial(
                "correct", draw.gauss(means[int(name)], deviation), deviation * stated, 0.0
            )
            found[name] = with_trial(found[name], trial)
    contenders = list(found.values())
    return outcome(contenders, rules), sum(item.trials for item in contenders)


def test_every_candidate_gets_its_first_trials_before_any_is_compared():
    young = [contender("a", 0.5, 0.5), contender("b", 0.0), contender("c")]
    assert next_trials(young, RULES) == ("c",)
    assert next_trials([contender("a"), contender("b")], RULES) == ("a", "b")


def test_then_the_leader_and_the_strongest_challenger_get_one_each():
    entrants = [
        contender("slow", -0.03, -0.03),
        contender("second", 0.010, 0.012),
        contender("first", 0.015, 0.015),
    ]
    assert next_trials(entrants, RULES) == ("first", "second")


def test_a_clear_leader_ends_the_race():
    entrants = [contender("a", 0.20, 0.20), contender("b", 0.0, 0.0)]
    assert next_trials(entrants, RULES) == ()
    assert outcome(entrants, RULES).best == "a"
    assert outcome(entrants, RULES).tied == ()
    assert outcome(entrants, RULES).settled


def test_equal_candidates_tie():
    entrants = [contender("a", *[0.001] * 12), contender("b", *[0.0] * 12)]
    assert next_trials(entrants, RULES) == ()
    assert outcome(entrants, RULES).tied == ("b",)


@pytest.mark.parametrize("deviation", [0.007, 0.03])
@pytest.mark.parametrize("lead", [0.02, 0.05])
def test_the_wrong_one_seldom_wins(deviation, lead):
    means = [-place * lead for place in range(8)]
    rules = RaceRules(max_trials=10_000)
    wrong = sum(raced(means, deviation, rules, seed)[0].best != "0" for seed in range(150))
    # A share of 5 % would give more than 15 of 150 in one of 400 tests.
    assert wrong <= 15


def test_a_spread_that_is_understated_is_found_out():
    rules = RaceRules(max_trials=400)
    wrong = [raced([0.0, -0.02], 0.03, rules, seed, stated=0.1)[0].best for seed in range(100)]
    assert wrong.count("1") <= 15


def test_copies_of_one_candidate_tie_nearly_always():
    rules = RaceRules(max_trials=48)
    ties = [len(raced([0.0] * 4, 0.007, rules, seed)[0].tied) == 3 for seed in range(200)]
    assert sum(ties) >= 190


@given(st.integers(0, 1000), st.integers(1, 8), st.integers(2, 40), st.floats(0, 0.05))
def test_a_race_keeps_its_limit(seed, count, most, lead):
    rules = RaceRules(max_trials=most)
    means = [-place * lead for place in range(count)]
    found, trials = raced(means, 0.02, rules, seed)
    assert trials <= most
    assert count == 1 or found.best is not None


@given(st.permutations(range(5)), st.integers(0, 100))
def test_the_outcome_depends_on_no_order_of_candidates(order, seed):
    draw = random.Random(seed)
    entrants = [contender(str(place), draw.random(), draw.random()) for place in range(5)]
    turned = [entrants[place] for place in order]
    assert set(next_trials(entrants, RULES)) == set(next_trials(turned, RULES))
    found, other = outcome(entrants, RULES), outcome(turned, RULES)
    assert (found.best, set(found.tied)) == (other.best, set(other.tied))


def test_the_spread_is_the_stated_one_unless_the_trials_refute_it():
    assert spread([contender("a", 0.0, 0.005, error=0.007)]) == pytest.approx(0.007)
    assert spread([contender("a", -0.1, 0.1, error=0.007)]) == pytest.approx(0.02**0.5)
    assert spread([contender("a", 1.0, 1.0, error=0.0)]) == MIN_SPREAD


def test_a_candidate_that_fails_cannot_win_and_a_lost_trial_counts_only_as_cost():
    one = with_trial(contender("a", 0.9, 0.9), Trial("incorrect"))
    assert one.failed
    assert outcome([one, contender("b", 0.0, 0.0)], RULES).best == "b"
    lost = with_trial(contender("a", 0.9), None)
    assert (lost.trials, lost.values) == (2, (0.9,))
    assert outcome([contender("a")], RULES).best is None


def test_a_race_waits_for_its_trials():
    race = Race([Contender("a"), Contender("b")], RaceRules(max_trials=5))
    assert race.due(1) == ("a",)
    assert race.due(8) == ()
    assert not race.over
    race.take("a", judged("x", 1.5))
    assert race.due(8) == ("b",)
    race.take("b", judged("y", None))
    assert race.over
    assert race.outcome.best == "a"
