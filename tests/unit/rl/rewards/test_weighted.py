"""The weighted reward is R = C (a + b min(s, cap) + c PR)."""

import pytest

from tilewright.records.events import EvalSummary
from tilewright.rl.presets import TurnRewardSection
from tilewright.rl.rewards.turn_reward import JudgedTurn
from tilewright.rl.rewards.weighted import REWARD, reward_of


@pytest.mark.parametrize(
    ("estimate", "wanted"), [("estimate", 1 + 0.5 * 2.0 + 0.2 * 0.8), ("low", 1 + 0.75 + 0.16)]
)
def test_the_terms_of_a_correct_program(estimate, wanted):
    section = TurnRewardSection(speed=0.5, coverage=0.2, speedup_estimate=estimate)
    item = EvalSummary(protocol="strict", verdict="correct", speedup=2.0, low=1.5, coverage=0.8)
    assert reward_of(item, section) == pytest.approx(wanted)
    assert REWARD.reward(JudgedTurn(item), section) == reward_of(item, section)
    capped = section.model_copy(update={"max_speedup": 1.0})
    assert reward_of(item, capped) == pytest.approx(1 + 0.5 + 0.16)


def test_a_program_that_is_not_correct_earns_nothing():
    for verdict in ("incorrect", "failed", "rejected"):
        item = EvalSummary(protocol="strict", verdict=verdict, speedup=9.0, coverage=1.0)
        assert reward_of(item, TurnRewardSection()) == 0.0
