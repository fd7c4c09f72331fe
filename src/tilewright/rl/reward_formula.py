"""The reward of one verdict under a preset. No torch."""

from __future__ import annotations

from tilewright.records.events import EvalSummary
from tilewright.rl.presets import RewardFormula


def reward_of(item: EvalSummary, section: RewardFormula) -> float:
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
