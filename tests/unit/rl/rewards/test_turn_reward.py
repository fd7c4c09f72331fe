"""Rewards are found by their names, in a preset and in the settings of a training."""

import pytest

from tilewright.errors import ConfigError, PluginError
from tilewright.rl.preset_text import explain
from tilewright.rl.presets import PRESETS, TurnRewardSection
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
    rule = TurnRewardSection(function="rule_x_execution", triton_rule="paper_minimal")
    changed = PRESETS["paper"].model_copy(update={"reward": rule})
    assert "by the rule paper_minimal" in explain(changed)


@pytest.mark.reads_settings
def test_a_kl_term_is_explained_with_its_estimator():
    paper = PRESETS["paper"]
    loss = paper.loss.model_copy(update={"kl": 0.01})
    assert "l + 0.01 k3, k3 = exp(d) - d - 1" in explain(paper.model_copy(update={"loss": loss}))
    assert "no KL term" in explain(paper)
