"""The best candidates of a run, by the means of their trials."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from tilewright.loop.estimates import Estimates, with_estimate
from tilewright.loop.strategies.base import Score
from tilewright.records.events import Turn

CandidateKey = tuple[int, str]
"""The trajectory of a candidate, and its digest."""


class _Place(NamedTuple):
    """The place of a candidate; the smallest one is the best. Equal orders have equal turns."""

    score: float
    low: float
    order: int
    key: CandidateKey
    turn: Turn


class _Ranking:
    """The candidates of one problem. Each turn changes it, so a change costs logarithmic time."""

    def __init__(self) -> None:
        self._places: dict[CandidateKey, _Place] = {}
        self._heap: list[_Place] = []
        """All places, also those that candidates had before and have lost."""
        self._count = 0

    def put(self, key: CandidateKey, turn: Turn, score: float, low: float) -> None:
        """Rank a candidate by its present score; its first turn stays the one that is shown."""
        before = self._places.get(key)
        order = self._count if before is None else before.order
        place = _Place(-score, -low, order, key, turn if before is None else before.turn)
        self._count += 1
        if place != before:
            self._places[key] = place
            heappush(self._heap, place)

    def drop(self, key: CandidateKey) -> None:
        """Rank a candidate no more, until it is put again."""
        self._places.pop(key, None)

    def best(self) -> Turn | None:
        """Return the turn of the best candidate, of equal ones the first; `None`: it has none."""
        while self._heap and self._places.get(self._heap[0].key) is not self._heap[0]:
            heappop(self._heap)
        return self._heap[0].turn if self._heap else None


class Leaders:
    """The best candidate of each problem so far. Lifetime: one run.

    The score of a candidate is that of the mean of its trials, since the best single trial is
    biased upwards. Of equal scores the higher lower end wins: a capped score may be equal. Of equal
    candidates the first one leads.
    """

    def __init__(self, score: Score, turns: Iterable[Turn] = ()) -> None:
        self._score = score
        self._estimates = Estimates()
        self._rankings = defaultdict[str, _Ranking](_Ranking)
        for turn in turns:
            self.add(turn)

    def add(self, turn: Turn) -> None:
        """Take in a turn, and rank its candidate anew."""
        self._estimates.add(turn)
        estimate = self._estimates.of(turn.ask.id)
        own = self._rankings[turn.ask.problem]
        # An answer without a digest is a candidate of its own.
        key = (turn.ask.sample, turn.source or turn.ask.id)
        verdict = turn.judgements[0].verdict if turn.judgements else None
        pooled = with_estimate(turn, estimate)
        mark = self._score(pooled)
        if mark is not None and (estimate.verdict or verdict) == "correct":
            own.put(key, turn, mark, pooled.judgements[0].low or 0.0)
        elif verdict not in (None, "unjudged"):
            own.drop(key)

    def best(self) -> dict[str, Turn]:
        """Return the turn of the best candidate of each problem that has one."""
        found = {problem: own.best() for problem, own in self._rankings.items()}
        return {problem: turn for problem, turn in found.items() if turn is not None}

    def best_of_problem(self, problem: str) -> Turn | None:
        """Return the turn of the best candidate of one problem; `None`: it has none."""
        own = self._rankings.get(problem)
        return None if own is None else own.best()

    def pooled(self) -> dict[str, Turn]:
        """Return the turns of `best`, each with the pooled speed-up and interval of its trials."""
        found = {problem: self.pooled_of(problem) for problem in self._rankings}
        return {problem: turn for problem, turn in found.items() if turn is not None}

    def pooled_of(self, problem: str) -> Turn | None:
        """Return the best turn of one problem, as `pooled`; `None`: it has none."""
        turn = self.best_of_problem(problem)
        return None if turn is None else with_estimate(turn, self._estimates.of(turn.ask.id))


def best_of(turns: Sequence[Turn], score: Score) -> dict[str, Turn]:
    """Return the turn of the best candidate of each problem."""
    return Leaders(score, turns).best()


def nothing_judged(turns: Sequence[Turn]) -> bool:
    """Tell whether there were evaluations, and all ended in a failure of our own."""
    verdicts = {item.verdict for turn in turns for item in turn.judgements}
    return verdicts == {"unjudged"}
