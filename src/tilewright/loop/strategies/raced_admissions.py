"""Races at admissions: a candidate that looks like a new best is measured again before it counts.

One trial with a large error would otherwise steer a search for a long time. In ShinkaEvolve one
false elite led all islands for 50 generations (its issue 119). The strategy gets the result after
the race, with the mean of the trials that did not select the candidate.

A limit: the strategy gets each turn once. So it keeps the score that the old best had before a
later race, even if the trials of this race refute that score.
"""

from __future__ import annotations

import math
from collections import deque

from tilewright.loop.driver import Strategy
from tilewright.loop.estimates import NORMAL_95
from tilewright.loop.racing import Contender, Race, RaceRules, spread
from tilewright.loop.strategies.base import ArchiveCell, Plan, Score, cells_of
from tilewright.records.events import Ask, Turn

RACED = "+race"
"""Ending of the name of a strategy whose admissions race, as in `greedy+race`."""
OPERATOR = "race"
MAX_TRIALS = 8
"""Most further trials of one admission: with a spread of 0.7 % two or three decide on 2 %."""


class RacedAdmissions:
    """A strategy that gets a new best candidate only after a race. Lifetime: one run."""

    def __init__(self, inner: Strategy, plan: Plan, score: Score) -> None:
        self._inner, self._plan, self._score = inner, plan, score
        self._held: deque[Turn] = deque()
        """Turns that wait for a race: the first one's is running."""
        self._race: Race | None = None
        self._best: Turn | None = None
        self._trials: dict[str, Contender] = {}
        """Trials of races, by the request that wrote the candidate."""
        self._count = 0

    def cells(self) -> list[ArchiveCell]:
        """Return the archive of the strategy."""
        return cells_of(self._inner)

    @property
    def stopped(self) -> str:
        """Return the rule by which the strategy stopped itself; empty if it did not."""
        return str(getattr(self._inner, "stopped", ""))

    def ask(self, limit: int) -> list[Ask]:
        """Return trials of the race first, then requests of the strategy."""
        asks = []
        for name in self._race.due(limit) if self._race is not None else ():
            self._count += 1
            asks.append(self._trial(name))
        if len(asks) < limit:
            asks += self._inner.ask(limit - len(asks))
        return asks

    def _trial(self, parent: str) -> Ask:
        plan = self._plan
        return Ask(
            id=f"{plan.problem}#{plan.sample}.{OPERATOR}{self._count}",
            problem=plan.problem,
            sample=plan.sample,
            turn=plan.turns + self._count,
            role="measure",
            parents=(parent,),
            operator=OPERATOR,
            reason="it may be a new best candidate",
        )

    def tell(self, turn: Turn) -> None:
        """Hold a turn that may be a new best; give every other one to the strategy."""
        if turn.ask.operator == OPERATOR and self._race is not None:
            self._race.take(turn.ask.parents[0], turn)
        elif turn.judgements and turn.judgements[0].speedup is not None and turn.source:
            self._held.append(turn)
        else:
            self._inner.tell(turn)
        while self._held and (self._race is None or self._race.over):
            self._advance()

    def _advance(self) -> None:
        """End the race of the first held turn, or begin it if it needs one."""
        turn = self._held[0]
        if self._race is None and self._needs_race(turn):
            assert self._best is not None
            names = (_writer(self._best), _writer(turn))
            known = [self._trials.get(name, Contender(name)) for name in names]
            spent = sum(item.trials for item in known)
            rules = RaceRules(first_trials=1, max_trials=spent + MAX_TRIALS)
            self._race = Race(known, rules)
            return
        self._held.popleft()
        if self._race is not None:
            self._trials |= {item.name: item for item in self._race.entrants}
            self._race = None
            turn = _measured(turn, self._trials[_writer(turn)])
            if self._best is not None:
                self._best = _measured(self._best, self._trials[_writer(self._best)])
        if self._rank(turn) > (self._rank(self._best) if self._best is not None else -math.inf):
            self._best = turn
        self._inner.tell(turn)

    def _rank(self, turn: Turn) -> float:
        score = self._score(turn)
        return -math.inf if score is None else score

    def _needs_race(self, turn: Turn) -> bool:
        """Tell whether a turn beats the best one within the intervals of both."""
        best = self._best
        if best is None or self._rank(turn) <= self._rank(best) or turn.source == best.source:
            return False
        old, new = best.judgements[0], turn.judgements[0]
        return old.high is not None and new.low is not None and new.low <= old.high


def _writer(turn: Turn) -> str:
    return turn.ask.parents[0] if turn.ask.role == "measure" else turn.ask.id


def _measured(turn: Turn, contender: Contender) -> Turn:
    """Return a turn with the result of its trials in a race instead of the one that selected it."""
    judgement = turn.judgements[0]
    if contender.failed:
        update: dict[str, object] = {"verdict": "incorrect", "speedup": None}
        update |= {"low": None, "high": None, "reason": "another trial of it was not correct"}
    elif contender.values:
        half = NORMAL_95 * spread([contender]) / math.sqrt(len(contender.values))
        update = {
            "speedup": math.exp(contender.mean),
            "low": math.exp(contender.mean - half),
            "high": math.exp(contender.mean + half),
        }
    else:
        return turn
    judged = judgement.model_copy(update=update)
    return turn.model_copy(update={"judgements": (judged, *turn.judgements[1:])})
