"""Random values: equal for equal decisions, and for these alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tilewright.loop.random_values import chooser

PURPOSES = st.lists(st.one_of(st.integers(), st.text()), max_size=4)


@given(st.integers(), PURPOSES)
def test_a_decision_is_drawn_again_alike(seed, purpose):
    assert chooser(seed, *purpose).random() == chooser(seed, *purpose).random()


@given(st.integers(), PURPOSES, st.integers(), PURPOSES)
def test_other_decisions_draw_other_values(seed, purpose, other_seed, other_purpose):
    same = (seed, purpose) == (other_seed, other_purpose) and [type(p) for p in purpose] == [
        type(p) for p in other_purpose
    ]
    drawn = chooser(seed, *purpose).random() == chooser(other_seed, *other_purpose).random()
    assert drawn is same


def test_the_values_are_these_on_every_machine():
    assert chooser(1, "one").random() == 0.913665230805204
