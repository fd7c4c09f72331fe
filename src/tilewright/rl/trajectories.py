"""Rollout batches: which trajectories one has, and the strategy that asks for their turns.

A batch is played turn by turn, all trajectories together, and never stops early: whether a turn is
asked for depends on no reward. So the prompts of a turn are all known before the first is answered,
and what is sampled together depends on no thread and no clock.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilewright.records.events import Ask, Turn

__all__ = ["LockstepStrategy", "Shown", "Trajectory", "drawn_problems", "trajectories_of"]


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One rollout of one occurrence of a prompt in one rollout batch."""

    batch: str
    problem: str
    occurrence: int
    """A prompt that a batch draws twice makes two groups."""
    rollout: int
    sample: int
    """Unique in the run, for reports."""

    @property
    def group(self) -> str:
        """The rollouts that it is compared with: those of this batch and occurrence."""
        return f"{self.batch}/{self.problem}.{self.occurrence}"

    def ask_id(self, turn: int) -> str:
        """Name a turn, the same in every sitting."""
        return f"{self.group}#{self.rollout}.{turn}"


def drawn_problems(problems: Sequence[str], count: int, step: int, seed: int) -> list[str]:
    """Return the problems of a step: all are drawn in a random order, then all again.

    A function of its arguments alone, so that a resumed run draws the same.

    Args:
        problems: at least one.
        count: in a step; it may be more than there are.
        step: from 0.
        seed: of the run.
    """
    found = []
    for place in range(step * count, (step + 1) * count):
        epoch, within = divmod(place, len(problems))
        order = list(range(len(problems)))
        random.Random(f"{seed}/problems/{epoch}").shuffle(order)
        found.append(problems[order[within]])
    return found


def trajectories_of(
    batch: str, problems: Sequence[str], rollouts: int, first: int
) -> list[Trajectory]:
    """Return the trajectories of a batch, those of one group side by side.

    Args:
        batch: its name.
        problems: one for each group.
        rollouts: in a group.
        first: the number of the first trajectory in the run.
    """
    seen: Counter[str] = Counter()
    found: list[Trajectory] = []
    for problem in problems:
        occurrence = seen[problem]
        seen[problem] += 1
        found += [
            Trajectory(batch, problem, occurrence, rollout, first + len(found) + rollout)
            for rollout in range(rollouts)
        ]
    return found


Shown = Callable[[str, Sequence[str]], Sequence[str] | None]
"""From a problem and the asks of earlier turns to those that a prompt has room for; `None` where
it has room for no answer."""


class LockstepStrategy:
    """Asks for turn after turn of a batch, all trajectories together. Lifetime: one batch."""

    def __init__(self, trajectories: Sequence[Trajectory], turns: int, shown: Shown) -> None:
        self._trajectories = trajectories
        self._turns = turns
        self._shown = shown
        self._earlier: dict[Trajectory, list[str]] = {item: [] for item in trajectories}
        self._untold: set[str] = set()
        self._waiting: deque[Ask] = deque()
        self.levels: list[list[Ask]] = []
        """The asks of each turn that was begun."""

    def ask(self, limit: int) -> list[Ask]:
        """Return asks of one turn; none before all of the turn before are told."""
        if not self._waiting and not self._untold and len(self.levels) < self._turns:
            self._begin()
        asks = [self._waiting.popleft() for _ in range(min(limit, len(self._waiting)))]
        self._untold |= {ask.id for ask in asks}
        return asks

    def tell(self, turn: Turn) -> None:
        """Note that a turn has ended."""
        self._untold.discard(turn.ask.id)

    def _begin(self) -> None:
        number = len(self.levels)
        level = []
        for item in self._trajectories:
            earlier = self._earlier[item]
            # Who had no room once has none later: what is shown never shrinks.
            shown = self._shown(item.problem, earlier) if len(earlier) == number else None
            if shown is None:
                continue
            ask = Ask(
                id=item.ask_id(number),
                problem=item.problem,
                sample=item.sample,
                turn=number,
                parents=tuple(earlier[-1:]),
                shown_turns=tuple(shown),
            )
            level.append(ask)
            earlier.append(ask.id)
        self.levels.append(level)
        self._waiting.extend(level)
