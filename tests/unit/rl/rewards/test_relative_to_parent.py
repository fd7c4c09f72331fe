"""The reward of Kernel-Smith is the speed-up over the parent, and 0 unless correct."""

import statistics

import pytest

from tilewright.records.events import EvalSummary
from tilewright.rl.advantages import group_mean
from tilewright.rl.masked_tensors import masked
from tilewright.rl.presets import TurnRewardSection
from tilewright.rl.rewards.relative_to_parent import REWARD
from tilewright.rl.rewards.turn_reward import JudgedTurn

SECTION = TurnRewardSection()


def summary(verdict, speedup=None):
    low = None if speedup is None else 0.9 * speedup
    return EvalSummary(protocol="strict", verdict=verdict, speedup=speedup, low=low)


def paid(child, parent=None, *, has_parent=True, section=SECTION):
    return REWARD.reward(JudgedTurn(child, "", parent, has_parent), section)


def test_golden_rewards_and_advantages():
    """Parent 1.5; GRPO with ddof 0, as the recipe has it."""
    parent = summary("correct", 1.5)
    children = [
        summary("correct", 1.8),
        summary("correct", 1.5),
        summary("correct", 0.75),
        summary("incorrect", 2.0),
        summary("rejected", 9.0),
        summary("failed"),
        summary("correct", 3.0),
        summary("correct", 1.5),
    ]
    made = [paid(child, parent) for child in children]
    assert made == pytest.approx([1.2, 1, 0.5, 0, 0, 0, 2, 1])
    mean, spread = statistics.fmean(made), statistics.pstdev(made)
    group = pytest.importorskip("torch").zeros(8, 1, dtype=pytest.importorskip("torch").int64)
    advantages = group_mean(
        masked([[value] for value in made]),
        group,
        singleton_advantage="zero",
        divide_by_std=True,
        ddof=0,
        epsilon=1e-9,
    ).values.flatten()
    assert advantages.tolist() == pytest.approx([(v - mean) / spread for v in made], abs=1e-6)
    wanted = [0.7238, 0.4269, -0.3155, -1.0579, -1.0579, -1.0579, 1.9117, 0.4269]
    assert advantages.tolist() == pytest.approx(wanted, abs=1e-4)


def test_a_reference_has_the_speed_1():
    assert paid(summary("correct", 1.8), has_parent=False) == pytest.approx(1.8)
    low = SECTION.model_copy(update={"speedup_estimate": "low"})
    assert paid(summary("correct", 2.0), summary("correct", 1.5), section=low) == pytest.approx(1.2)


def test_a_turn_without_a_known_ratio_is_left_out_and_repairs_are_not_punished():
    for parent in (None, summary("incorrect"), summary("correct")):
        assert paid(summary("correct", 2.0), parent) is None
        assert paid(summary("failed"), parent) is None
    assert paid(summary("correct"), summary("correct", 2.0)) is None
