"""The best candidates of a run, by the means of their trials."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tilewright.loop.estimates import Estimates, with_estimate
from tilewright.loop.strategies.base import Score
from tilewright.records.events import Turn


class Leaders:
    """The best candidate of each problem so far. Lifetime: one run.

    The score of a candidate is that of the mean of its trials, since the best single trial is
    biased upwards. Of equal scores the higher lower end wins: a capped score may be equal. Of equal
    candidates the first one leads.
    """

    def __init__(self, score: Score, turns: Iterable[Turn] = ()) -> None:
        self._score = score
        self._estimates = Estimates()
        self._ranked: dict[str, dict[tuple[int, str], tuple[tuple[float, float], Turn]]] = {}
        for turn in turns:
            self.add(turn)

    def add(self, turn: Turn) -> None:
        """Take in a turn, and rank its candidate anew."""
        self._estimates.add(turn)
        estimate = self._estimates.of(turn.ask.id)
        own = self._ranked.setdefault(turn.ask.problem, {})
        # An answer without a digest is a candidate of its own.
        key = (turn.ask.sample, turn.source or turn.ask.id)
        verdict = turn.judgements[0].verdict if turn.judgements else None
        pooled = with_estimate(turn, estimate)
        mark = self._score(pooled)
        if mark is not None and (estimate.verdict or verdict) == "correct":
            first = own[key][1] if key in own else turn
            own[key] = (mark, pooled.judgements[0].low or 0.0), first
        elif verdict not in (None, "unjudged"):
            own.pop(key, None)

    def best(self) -> dict[str, Turn]:
        """Return the turn of the best candidate of each problem that has one."""
        found = {}
        for problem, own in self._ranked.items():
            if own:
                found[problem] = max(own.values(), key=lambda item: item[0])[1]
        return found

    def pooled(self) -> dict[str, Turn]:
        """Return the turns of `best`, each with the pooled speed-up and interval of its trials."""
        found = {problem: self.pooled_of(problem) for problem in self._ranked}
        return {problem: turn for problem, turn in found.items() if turn is not None}

    def pooled_of(self, problem: str) -> Turn | None:
        """Return the best turn of one problem, as `pooled`; `None`: it has none."""
        own = self._ranked.get(problem)
        if not own:
            return None
        turn = max(own.values(), key=lambda item: item[0])[1]
        return with_estimate(turn, self._estimates.of(turn.ask.id))


def best_of(turns: Sequence[Turn], score: Score) -> dict[str, Turn]:
    """Return the turn of the best candidate of each problem."""
    return Leaders(score, turns).best()


def nothing_judged(turns: Sequence[Turn]) -> bool:
    """Tell whether there were evaluations, and all ended in a failure of our own."""
    verdicts = {item.verdict for turn in turns for item in turn.judgements}
    return verdicts == {"unjudged"}
