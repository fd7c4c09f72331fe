"""Test-time scaling: a trained model writes many turns, and a context chooses the shown ones.

All contexts begin with the same first turns, because sampling depends on seed, turn and prompt
alone. So they differ only by their choice. No torch.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from tilewright.loop.strategies.sequential import CONTEXTS
from tilewright.records.events import Turn
from tilewright.rl.presets import TurnRewardSection
from tilewright.rl.rewards.weighted import reward_of
from tilewright.rl.study.fresh_scores import FAST

SCALING = "scaling.json"
Figures = dict[str, list[float]]
"""Figures of the best program so far, after each turn."""


def shown_turns(
    context: str, w: int, section: TurnRewardSection
) -> Callable[[Sequence[Turn]], list[str]]:
    """Return the function from the earlier turns of a trajectory to the requests of shown ones."""
    choose = CONTEXTS[context]

    def shown(turns: Sequence[Turn]) -> list[str]:
        verdicts = [turn.judgements[0] for turn in turns]
        rewards = [
            reward_of(item, section) if item.verdict != "unjudged" else None for item in verdicts
        ]
        return [turns[place].ask.id for place in choose(rewards, w)]

    return shown


def scaling_figures(rows: Sequence[Sequence[Turn | None]]) -> Figures:
    """Return the best of the history after each turn, as means over the trajectories.

    `correct` is the share with a correct program, and `fast@1.2` that of a best one above 1.2.
    `speedup` is the mean of the best speed-up, which is 0 before the first correct program.
    """
    found: Figures = {"correct": [], "fast@1.2": [], "speedup": []}
    for count in range(1, max(map(len, rows)) + 1):
        bests = [_best(row[:count]) for row in rows]
        found["correct"].append(statistics.fmean(best > 0.0 for best in bests))
        found["fast@1.2"].append(statistics.fmean(best > FAST for best in bests))
        found["speedup"].append(statistics.fmean(bests))
    return found


def _best(turns: Sequence[Turn | None]) -> float:
    verdicts = [turn.judgements[0] for turn in turns if turn is not None]
    correct = [item for item in verdicts if item.verdict == "correct"]
    return max((item.speedup or 0.0 for item in correct), default=0.0)
