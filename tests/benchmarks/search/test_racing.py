"""The bars of races: simulated ones, equal allocation, and searches that race."""

from __future__ import annotations

from benchmarks.search.racing import equal_trials, noisy_search, simulated


def test_a_simulated_race_saves_trials_of_equal_allocation():
    found = simulated(0.03, 0.02, races=60)
    assert found.held
    assert 8 * 10 < found.equal * 8 < 8 * 17
    assert not simulated(0.03, 0.02, races=20).wrong


def test_equal_allocation_needs_four_times_the_trials_for_half_the_lead():
    wide, narrow = (
        equal_trials([-place * lead for place in range(8)], 0.03) for lead in (0.02, 0.01)
    )
    assert 3.5 < narrow / wide < 4.5


def test_noisy_searches_race_and_have_programs_of_their_own():
    found = [noisy_search(seed) for seed in range(12)]
    assert sum(item.raced for item in found) >= 4
    assert len({item.claimed for item in found}) == 12
    assert all(item.behind >= 0 for item in found)
    assert not any(noisy_search(seed, candidates=0).raced for seed in range(4))
