"""The reward of AutoTriton: 1 for a correct program in Triton, else 0. No torch.

Speed has no effect. The rule looks at the code alone, and the tests at the results alone.
"""

from __future__ import annotations

from tilewright.languages.triton_rules import is_triton
from tilewright.rl.presets import TurnRewardSection
from tilewright.rl.rewards.turn_reward import JudgedTurn, TurnReward


def _reward(turn: JudgedTurn, section: TurnRewardSection) -> float:
    passes = turn.verdict.verdict == "correct"
    if section.triton_rule == "none" or not passes:
        return float(passes)
    return float(is_triton(turn.code, section.triton_rule))


def _formula(section: TurnRewardSection) -> str:
    if section.triton_rule == "none":
        return "r = 1[tests pass]"
    return f"r = 1[is_triton(code)] 1[tests pass], is_triton by the rule {section.triton_rule}"


SOURCE = "AutoTriton, arXiv 2507.05687, reward of RL"
REWARD = TurnReward(_reward, _formula, SOURCE, reads_code=True)
