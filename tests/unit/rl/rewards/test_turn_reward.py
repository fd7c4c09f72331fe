"""Rewards are found by their names, in a preset and in the settings of a training."""

import pytest

from tilewright.errors import ConfigError, PluginError
from tilewright.rl.preset_text import explain
from tilewright.rl.presets import PRESETS, RewardSection
from tilewright.rl.rewards.turn_reward import find_reward
from tilewright.rl.training_config import TrainConfig


def test_an_unknown_reward_is_named_with_those_that_exist():
    with pytest.raises(PluginError, match="no reward 'weight'"):
        find_reward("weight")
    config = TrainConfig(overrides={"reward": {"function": "rule_x_executions"}})
    with pytest.raises(ConfigError, match=r"overrides\.reward\.function: .*rule_x_execution"):
        config.estimator()


def test_each_preset_explains_its_reward():
    for each in PRESETS.values():
        assert find_reward(each.reward.function).formula(each.reward).splitlines()[0] in explain(
            each
        )
    rule = RewardSection(function="rule_x_execution", triton_rule="paper_minimal")
    changed = PRESETS["paper"].model_copy(update={"reward": rule})
    assert "by the rule paper_minimal" in explain(changed)
