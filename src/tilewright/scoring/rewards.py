"""Rewards: views of a judgement, never stored truths, so that one run can be scored by each rule.

Every rule returns `None` for what could not be judged: that is nobody's zero.
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright.records.events import Judgement

__all__ = ["REWARDS", "Reward", "paper", "released_code", "speed", "tilewright"]

Reward = Callable[[Judgement], float | None]
MOST_SPEEDUP = 3.0
WEIGHT = 0.5
"""Of each term in the released code (kernel_trainer.yaml)."""


def paper(judgement: Judgement) -> float | None:
    """Return C + C min(s, 3) + C PR (Dr. Kernel, arXiv 2602.05885, equations 1 and 8), 0 to 5.

    PR is the coverage; where none was measured that term is 0. A decoy is rejected, so C = 0.
    """
    if judgement.verdict == "unjudged":
        return None
    if judgement.verdict != "correct":
        return 0.0
    return 1.0 + min(judgement.speedup or 0.0, MOST_SPEEDUP) + (judgement.coverage or 0.0)


def released_code(judgement: Judgement) -> float | None:
    """Return 0.5 C + 0.5 min(s, 3) + 0.5 C PR, as the paper's released code does: half of it."""
    whole = paper(judgement)
    return None if whole is None else WEIGHT * whole


def tilewright(judgement: Judgement) -> float | None:
    """Return C + min(max(l, 0), 3) with l the lower end of the speed-up's interval, 0 to 4.

    Noise is not paid for: a lucky measurement has a wide interval.
    """
    if judgement.verdict == "unjudged":
        return None
    if judgement.verdict != "correct":
        return 0.0
    return 1.0 + min(max(judgement.low or 0.0, 0.0), MOST_SPEEDUP)


def speed(judgement: Judgement) -> float | None:
    """Return C + max(l, 0), the reward of ours without its cap: for search, which has no end.

    Under a cap a search that has reached it cannot tell better from best.
    """
    if judgement.verdict == "unjudged":
        return None
    return 1.0 + max(judgement.low or 0.0, 0.0) if judgement.verdict == "correct" else 0.0


REWARDS: dict[str, Reward] = {
    "speed": speed,
    "tilewright": tilewright,
    "paper": paper,
    "released_code": released_code,
}
