"""Rewards against golden vectors of Dr. Kernel's equations."""

import pytest

from tilewright.records.events import EvalSummary
from tilewright.scoring.rewards import REWARDS, paper, released_code, speed, tilewright


def judgement(verdict="correct", **fields):
    return EvalSummary(protocol="strict", verdict=verdict, **fields)


@pytest.mark.parametrize(
    ("speedup", "coverage", "wanted"), [(1.0, 0.0, 2.0), (2.08, 0.8615, 3.9415), (5.0, 1.0, 5.0)]
)
def test_the_released_codes_reward_is_half_of_the_papers(speedup, coverage, wanted):
    item = judgement(speedup=speedup, coverage=coverage)
    assert paper(item) == pytest.approx(wanted)
    assert released_code(item) == pytest.approx(wanted / 2)


@pytest.mark.parametrize("verdict", ["incorrect", "failed", "rejected"])
@pytest.mark.parametrize("name", sorted(REWARDS))
def test_an_incorrect_candidate_has_a_reward_of_zero(name, verdict):
    assert REWARDS[name](judgement(verdict)) == 0.0


@pytest.mark.parametrize("name", sorted(REWARDS))
def test_an_unjudged_candidate_has_no_reward(name):
    assert REWARDS[name](judgement("unjudged")) is None


def test_the_speed_reward_has_no_upper_limit():
    assert speed(judgement(speedup=9.0, low=8.0, high=10.0)) == 9.0


def test_the_tilewright_reward_uses_the_lower_end_of_the_interval():
    assert tilewright(judgement(speedup=2.0, low=1.5, high=2.5)) == 2.5
    assert tilewright(judgement(speedup=9.0, low=8.0, high=10.0)) == 4.0
    assert tilewright(judgement()) == 1.0
