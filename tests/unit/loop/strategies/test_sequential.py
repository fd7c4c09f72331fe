"""Which turns a prompt shows: golden vectors of the paper's text and of its code."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.loop.strategies.base import Plan
from tilewright.loop.strategies.sequential import CONTEXTS, best_window, last_w, top_w, vanilla

REWARDS = [2.0, 1.9, 0, 0.5, 1.2, 0]


@pytest.mark.parametrize(
    ("choose", "places"),
    [(last_w, [3, 4, 5]), (top_w, [0, 1, 4]), (best_window, [0, 1, 2]), (vanilla, list(range(6)))],
)
def test_each_context_shows_its_turns_of_six(choose, places):
    assert choose(REWARDS, 3) == places


def test_of_equal_rewards_top_w_shows_the_newest_and_best_window_the_earliest():
    assert top_w([1.0, 1.0, 1.0, 1.0], 2) == [2, 3]
    assert best_window([1.0, 1.0, 1.0, 1.0], 2) == [0, 1]


def test_the_released_settings_show_fourteen_turns():
    # 5 turns first; each of 9 more iterations keeps 4 of the 5 and makes one more.
    user_turns, iterations, remain = 5, 10, 4
    turns = user_turns + (iterations - 1) * (user_turns - remain)
    assert turns == 14
    assert turns == Plan(problem="any").turns


REWARD = st.one_of(st.none(), st.floats(0, 4))


@given(st.sampled_from(sorted(CONTEXTS)), st.lists(REWARD, max_size=20), st.integers(1, 6))
def test_unjudged_turns_are_never_shown_and_the_order_is_chronological(name, rewards, w):
    places = CONTEXTS[name](rewards, w)
    assert places == sorted(set(places))
    assert all(rewards[place] is not None for place in places)
    if name != "vanilla":
        judged = sum(reward is not None for reward in rewards)
        assert len(places) == min(w, judged)


@given(st.lists(st.floats(0, 4), min_size=1, max_size=20), st.integers(1, 6))
def test_top_w_shows_the_largest_rewards(rewards, w):
    shown = sorted(rewards[place] for place in top_w(rewards, w))
    assert shown == sorted(rewards)[-w:]


@given(st.lists(st.floats(0, 4), min_size=1, max_size=20), st.integers(1, 6))
def test_best_window_shows_the_window_with_the_largest_sum(rewards, w):
    places = best_window(rewards, w)
    sums = [sum(rewards[s : s + len(places)]) for s in range(len(rewards) - len(places) + 1)]
    assert sum(rewards[place] for place in places) == max(sums)
    assert places == list(range(places[0], places[0] + len(places)))
