"""Rollout batches: the trajectories of each, and the strategy that requests their turns.

All trajectories of a batch advance turn by turn together, and no reward ends one early. So neither
threads nor time decide which prompts the engine samples together.
"""

from __future__ import annotations

import itertools
import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilewright.records.events import Ask, Form, Turn


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One rollout of one occurrence of a prompt in one rollout batch."""

    batch: str
    problem: str
    occurrence: int
    """A prompt that occurs twice in a batch makes two groups."""
    rollout: int
    sample: int
    """Number of the trajectory, unique in the run, for reports."""
    context: str = ""
    """The stored context that its prompts show; empty: none."""

    @property
    def group(self) -> str:
        """The rollouts of this batch and occurrence, whose returns the estimator compares."""
        return f"{self.batch}/{self.problem}.{self.occurrence}"

    def ask_id(self, turn: int) -> str:
        """Return the id of a turn's request, the same in every session."""
        return f"{self.group}#{self.rollout}.{turn}"


def drawn_problems(problems: Sequence[str], count: int, step: int, seed: int) -> list[str]:
    """Return the `count` problems of a step: each epoch has all in a new random order.

    It is a function of its arguments, so a resumed run gets the same problems.
    """
    found = []
    for place in range(step * count, (step + 1) * count):
        epoch, within = divmod(place, len(problems))
        order = list(range(len(problems)))
        random.Random(f"{seed}/problems/{epoch}").shuffle(order)
        found.append(problems[order[within]])
    return found


def trajectories_of(
    batch: str, problems: Sequence[str], rollouts: int, first: int, contexts: Sequence[str] = ()
) -> list[Trajectory]:
    """Return so many rollouts of each problem, those of one group together, numbered from first.

    `contexts` has the stored context of each problem, or nothing.
    """
    pairs = itertools.product(enumerate(problems), range(rollouts))
    return [
        Trajectory(
            batch,
            problem,
            problems[:place].count(problem),
            rollout,
            sample,
            contexts[place] if contexts else "",
        )
        for sample, ((place, problem), rollout) in enumerate(pairs, start=first)
    ]


FittingTurns = Callable[[str, Sequence[str]], Sequence[str] | None]
"""From a problem and its earlier requests to those that a prompt has room for; `None`: to none."""


ShownTurns = Callable[[Sequence[Turn]], Sequence[str]]
"""From the finished turns of a trajectory to the requests of those that its next prompt shows."""


def all_turns(turns: Sequence[Turn]) -> list[str]:
    """Return the requests of all turns."""
    return [turn.ask.id for turn in turns]


class LockstepStrategy:
    """Requests one turn of all trajectories of a batch at a time. Lifetime: one batch."""

    def __init__(
        self,
        trajectories: Sequence[Trajectory],
        turns: int,
        room: FittingTurns,
        shown: ShownTurns = all_turns,
        stored: Callable[[str], Sequence[Turn]] = lambda _: (),
        form: Form = "conversation",
    ) -> None:
        """`stored` returns the turns of a stored context, which a trajectory continues."""
        self._turns, self._room, self._shown, self._form = turns, room, shown, form
        found = {item: stored(item.context) for item in trajectories}
        self._finished = {turn.ask.id: turn for turns in found.values() for turn in turns}
        self._earlier = {item: [turn.ask.id for turn in turns] for item, turns in found.items()}
        self._stored = {item: len(turns) for item, turns in found.items()}
        self._unfinished: set[str] = set()
        self._waiting: deque[Ask] = deque()
        self.levels: list[list[Ask]] = []
        """The requests of each turn that was begun."""

    def ask(self, limit: int) -> list[Ask]:
        """Return requests of one turn; a turn begins when the turn before is finished."""
        if not self._waiting and not self._unfinished and len(self.levels) < self._turns:
            self._begin()
        asks = [self._waiting.popleft() for _ in range(min(limit, len(self._waiting)))]
        self._unfinished |= {ask.id for ask in asks}
        return asks

    def tell(self, turn: Turn) -> None:
        """Record that a turn is finished."""
        self._unfinished.discard(turn.ask.id)
        self._finished[turn.ask.id] = turn

    def _begin(self) -> None:
        number = len(self.levels)
        level = []
        for item, earlier in self._earlier.items():
            # A trajectory without room gets no further turn, so its next prompt would be the same.
            lasts = len(earlier) == number + self._stored[item]
            chosen = self._shown([self._finished[name] for name in earlier])
            shown = self._room(item.problem, chosen) if lasts else None
            if shown is None:
                continue
            ask = Ask(
                id=item.ask_id(number),
                problem=item.problem,
                sample=item.sample,
                turn=number,
                parents=tuple(earlier[-1:]),
                shown_turns=tuple(shown),
                form=self._form,
            )
            level.append(ask)
            earlier.append(ask.id)
        self.levels.append(level)
        self._waiting.extend(level)
