"""The reward of Kernel-Smith: the speed-up over the program that was improved. No torch."""

from __future__ import annotations

from tilewright.rl.presets import TurnRewardSection
from tilewright.rl.rewards.turn_reward import JudgedTurn, TurnReward


def _reward(turn: JudgedTurn, section: TurnRewardSection) -> float | None:
    """Return s_child / s_parent of a correct program, and 0 of any other.

    A reference in PyTorch has s_parent = 1. `None`: the speed of the child or of its parent is not
    known, or the parent is not correct. Then a wrong child has no reward either: a 0 for it alone
    would punish repairs.
    """
    before: float | None = 1.0
    if turn.has_parent:
        is_correct = turn.parent is not None and turn.parent.verdict == "correct"
        before = turn.parent.speedup if turn.parent is not None and is_correct else None
    if before is None:
        return None
    if turn.verdict.verdict != "correct":
        return 0.0
    low = section.speedup_estimate == "low"
    own = turn.verdict.low if low else turn.verdict.speedup
    return None if own is None else own / before


def _formula(section: TurnRewardSection) -> str:
    own = "the low end of s_child" if section.speedup_estimate == "low" else "s_child"
    return f"r = {own} / s_parent if correct, else 0; s_parent of a reference = 1"


REWARD = TurnReward(
    _reward, _formula, "Kernel-Smith, arXiv 2603.28342, section on RL", reads_parent=True
)
