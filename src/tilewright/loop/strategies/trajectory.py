"""One trajectory: a strategy within its own limits, whose best candidate is measured again.

Every strategy of a comparison gets the same limits. At the end the candidates that may be the best
race. The trials after the race select nothing, so that their mean is not biased as the trials are
that made a candidate the best.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tilewright.loop.driver import Strategy
from tilewright.loop.estimates import Estimates
from tilewright.loop.racing import Contender, Race, RaceRules, rivals
from tilewright.loop.strategies.base import ArchiveCell, Plan, Score, cells_of
from tilewright.records.events import Ask, Turn
from tilewright.scoring.strategy_table import FINAL_RACE, REMEASURE


@dataclass(frozen=True)
class TrajectoryLimits:
    """Most resources of one trajectory. `None`: no limit of its own."""

    judged: int | None = None
    """Different candidates that are judged."""
    device_s: float | None = None
    """Seconds of evaluations; the one that exceeds it is the last."""
    final_trials: int = 0
    """Further trials of the best candidate at the end, beyond the other limits."""
    race_candidates: int = 0
    """Most candidates that race before the final trials, beyond the other limits."""
    race: RaceRules = field(default_factory=RaceRules)


class LimitedTrajectory:
    """A strategy that ends at its limits. Lifetime: one run."""

    def __init__(self, inner: Strategy, plan: Plan, score: Score, limits: TrajectoryLimits) -> None:
        self._inner, self._plan, self._score, self._limits = inner, plan, score, limits
        self._open: dict[str, Ask] = {}
        self._sources: set[str] = set()
        self._device_s = 0.0
        self._estimates = Estimates()
        self._scores: dict[str, float] = {}
        self._writers: dict[str, str] = {}
        """By code: the first request that wrote it. Copies of one candidate are no rivals."""
        self._over = False
        self._race: Race | None = None
        self._raced = 0
        self._final = 0

    def cells(self) -> list[ArchiveCell]:
        """Return the archive of the strategy."""
        return cells_of(self._inner)

    @property
    def stopped(self) -> str:
        """Return the rule by which the strategy stopped itself; empty if it did not."""
        return str(getattr(self._inner, "stopped", ""))

    def ask(self, limit: int) -> list[Ask]:
        """Return requests of the strategy, and at its end those that measure the best again."""
        asks: list[Ask] = []
        room = self._room(limit)
        if not self._over and room:
            asks = self._inner.ask(room)
        self._over = self._over or (not asks and not self._open and limit > 0)
        if self._over and not asks:
            asks = self._closing(limit)
        self._open |= {ask.id: ask for ask in asks}
        return asks

    def _closing(self, limit: int) -> list[Ask]:
        """Return the trials of the race, and after its end those of the winner."""
        if self._race is None and not self._open:
            self._race = Race(self._entrants(), self._limits.race)
        if self._race is None or limit < 1:
            return []
        asks = []
        for name in self._race.due(limit):
            self._raced += 1
            asks.append(self._trial(name, FINAL_RACE, self._raced))
        while self._race.over and len(asks) < limit and self._wants_trial():
            self._final += 1
            asks.append(self._trial(self._best(), REMEASURE, self._final))
        return asks

    def _entrants(self) -> list[Contender]:
        """Return the candidates that race; none without trials at the end, which report one."""
        if not self._limits.final_trials:
            return []
        names = sorted(self._scores, key=lambda name: -self._scores[name])
        ranked = [(name, self._estimates.of(name)) for name in names]
        return [Contender(name) for name in rivals(ranked, self._limits.race_candidates)]

    def _best(self) -> str:
        """Return the winner of the race; without one the candidate with the best score."""
        won = self._race.outcome.best if self._race is not None else None
        return won or max(self._scores, key=self._scores.__getitem__)

    def _room(self, limit: int) -> int:
        """Return how many requests may be made; each may be another candidate to judge."""
        limits = self._limits
        if limits.device_s is not None and self._device_s >= limits.device_s:
            return 0
        if limits.judged is None:
            return limit
        pending = sum(ask.role in ("propose", "measure") for ask in self._open.values())
        return max(min(limit, limits.judged - len(self._sources) - pending), 0)

    def _wants_trial(self) -> bool:
        return self._final < self._limits.final_trials and bool(self._scores)

    def _trial(self, parent: str, operator: str, number: int) -> Ask:
        plan = self._plan
        return Ask(
            id=f"{plan.problem}#{plan.sample}.{operator}{number}",
            problem=plan.problem,
            sample=plan.sample,
            turn=plan.turns + self._raced + self._final,
            role="measure",
            parents=(parent,),
            operator=operator,
        )

    def tell(self, turn: Turn) -> None:
        """Count a turn, and give it to the strategy unless it belongs to the trials at the end."""
        del self._open[turn.ask.id]
        if turn.ask.operator == FINAL_RACE and self._race is not None:
            self._race.take(turn.ask.parents[0], turn)
            if turn.judgements and turn.judgements[0].verdict not in ("correct", "unjudged"):
                self._scores.pop(turn.ask.parents[0], None)
            return
        if turn.ask.operator == REMEASURE:
            return
        self._device_s += sum(item.seconds for item in turn.judgements)
        if turn.judgements and turn.source:
            self._sources.add(turn.source)
            self._estimates.add(turn)
            self._note(turn)
        self._inner.tell(turn)

    def _note(self, turn: Turn) -> None:
        """Keep the score of a correct candidate: the mean of its trials, or its one score."""
        # The code of a `measure` request is that of the request that wrote it.
        asked = turn.ask.parents[0] if turn.ask.role == "measure" else turn.ask.id
        writer = self._writers.setdefault(turn.source, asked)
        estimate = self._estimates.of(turn.ask.id)
        if estimate.verdict != "correct":
            self._scores.pop(writer, None)
            return
        score = estimate.speedup if estimate.speedup is not None else self._score(turn)
        if score is not None:
            self._scores[writer] = score
