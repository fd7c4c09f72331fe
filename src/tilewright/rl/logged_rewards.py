"""The rewards of judged turns as a log has them, and those of earlier batches by problem."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tilewright.records.events import Turn
from tilewright.rl.presets import TurnRewardSection
from tilewright.rl.rewards.turn_reward import find_reward
from tilewright.rl.training_rows import paid_verdict


def batch_of(turn: Turn) -> str:
    """Return the name of the batch of a turn; the names of the batches of a run are in order."""
    return turn.ask.id.partition("/")[0]


def rewards_by_request(
    turns: Iterable[Turn],
    section: TurnRewardSection,
    *,
    checks: bool,
    stored: Mapping[str, Turn] | None = None,
) -> dict[str, float]:
    """Return the reward of each judged turn by its request.

    `turns` are in the order of the log, and `stored` those of stored contexts by request. Without
    `checks`, a finding rejects nothing.
    """
    reward, seen, found = find_reward(section.function), dict(stored or {}), {}
    for turn in turns:
        seen[turn.ask.id] = turn
        parent = seen.get(turn.ask.parents[-1]) if turn.ask.parents else None
        paid = paid_verdict(turn, parent, checks=checks)
        value = reward.reward(paid, section) if paid is not None else None
        if value is not None:
            found[turn.ask.id] = value
    return found


class LoggedReward(NamedTuple):
    """The reward of one turn; `sample` is the number of its trajectory in the run."""

    problem: str
    sample: int
    turn: int
    reward: float


class RewardLog:
    """The rewards of batches by problem. Lifetime: one session of a run, or one replay."""

    def __init__(self) -> None:
        self._batches: dict[str, dict[str, list[LoggedReward]]] = {}

    def add(self, batch: str, rewards: Iterable[LoggedReward]) -> None:
        """Record all rewards of a batch, in place of those that it had."""
        found: dict[str, list[LoggedReward]] = defaultdict(list)
        for item in rewards:
            found[item.problem].append(item)
        self._batches[batch] = found

    def before(self, batch: str, problems: Iterable[str], window: int) -> dict[str, list[float]]:
        """Return the last `window` rewards of each problem before a batch, the oldest first."""
        names = sorted(name for name in self._batches if name < batch)
        return {problem: self._last(names, problem, window) for problem in set(problems)}

    def _last(self, names: Sequence[str], problem: str, window: int) -> list[float]:
        found: list[float] = []
        for name in reversed(names):
            found[:0] = [item.reward for item in sorted(self._batches[name].get(problem, ()))]
            if len(found) >= window:
                break
        return found[max(len(found) - window, 0) :]
