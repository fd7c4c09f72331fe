"""The epsilon-net: its fixture, separation and cover, and the calibration of epsilon."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import ConfigError
from tilewright.loop.archives.epsilon_net import Epsilon, admitted

VECTORS = st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1)), max_size=12)


def places(found):
    return [item.place for item in found]


def test_the_farthest_proposal_is_first():
    proposals = [(0.05,), (0.12,), (0.30,), (0.33,)]
    found = admitted(proposals, [(0.0,)], 0.1)
    assert [proposals[item.place] for item in found] == [(0.33,), (0.12,)]
    assert [item.distance for item in found] == pytest.approx([0.33, 0.12])


@given(VECTORS, VECTORS, st.floats(0.01, 1.0))
def test_admitted_ones_are_separated_and_rejected_ones_are_covered(proposals, known, epsilon):
    taken = places(admitted(proposals, known, epsilon))
    net = [*known, *(proposals[place] for place in taken)]
    for number, place in enumerate(taken):
        before = net[: len(known) + number]
        assert all(math.dist(proposals[place], other) > epsilon for other in before)
    for place in set(range(len(proposals))) - set(taken):
        assert min(math.dist(proposals[place], other) for other in net) <= epsilon


def test_an_epsilon_of_zero_admits_all_in_their_order():
    assert places(admitted([(1.0,), (1.0,), (0.0,)], [(1.0,)], 0.0)) == [0, 1, 2]


def test_vectors_of_another_length_are_refused():
    with pytest.raises(ConfigError, match=r"different lengths: \[1, 2\]; use one embedding model"):
        admitted([(1.0,)], [(1.0, 2.0)], 0.1)


def test_epsilon_is_calibrated_on_the_first_different_proposals():
    epsilon = Epsilon("calibrate", 3, 0.0)
    epsilon.learn([(0.0,), (0.0,), (1.0,)])
    assert epsilon.value == 0.0
    assert str(epsilon) == "epsilon not calibrated, 2 of 3 proposals"
    epsilon.learn([(1.25,)])
    assert epsilon.value == 0.25
    epsilon.learn([(1.26,)])
    assert str(epsilon) == "epsilon 0.25, calibrated"
    assert str(Epsilon(0.1, 3, 0.0)) == "epsilon 0.1, given"
