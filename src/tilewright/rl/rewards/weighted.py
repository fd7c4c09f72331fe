"""The reward of Dr. Kernel: a weighted sum of correctness, speed and coverage. No torch."""

from __future__ import annotations

from tilewright.records.events import EvalSummary
from tilewright.rl.presets import TurnRewardSection
from tilewright.rl.rewards.turn_reward import JudgedTurn, TurnReward

_SPEED = {"estimate": "the speed-up", "low": "the low end of the speed-up"}


def reward_of(item: EvalSummary, section: TurnRewardSection) -> float:
    """Return R = C (a + b min(s, max_speedup) + c PR) of a verdict.

    Dr. Kernel, arXiv 2602.05885, equations 1 and 8. `tilewright.scoring.rewards` has the same with
    fixed weights. C is 1 for a correct candidate, else 0. s is the speed-up, or the lower end of
    its interval, and PR the coverage; the term of an unknown one is 0. The preset sets a, b and c.
    """
    if item.verdict != "correct":
        return 0.0
    speed = (item.low if section.speedup_estimate == "low" else item.speedup) or 0.0
    paid = section.correct + section.speed * min(speed, section.max_speedup)
    return paid + section.coverage * (item.coverage or 0.0)


def _reward(turn: JudgedTurn, section: TurnRewardSection) -> float:
    return reward_of(turn.verdict, section)


def _formula(section: TurnRewardSection) -> str:
    return (
        f"R = C ({section.correct:g} + {section.speed:g} min(s, {section.max_speedup:g}) + "
        f"{section.coverage:g} PR)   (eq. 1, 7, 8)\n"
        f"C: correct and not rejected; s: {_SPEED[section.speedup_estimate]}; PR: coverage; "
        "a term without a number is 0"
    )


REWARD = TurnReward(_reward, _formula, "Dr. Kernel, arXiv 2602.05885, equations 1 and 8")
