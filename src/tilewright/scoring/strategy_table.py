"""Strategies that one run compares: a row for each, regret curves and paired differences. Pure.

The figure of a trajectory is its best candidate as the trials at its end measured it. They selected
nothing, so its mean is not biased. Trajectories of equal problem and seed are compared in pairs.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from tilewright.records.events import Turn

REMEASURE = "remeasure"
"""Operator of the trials at the end of a trajectory (`tilewright.loop.strategies.trajectory`)."""
FINAL_RACE = "final race"
"""Operator of the trials before them, which find out which candidate is the best."""
NEAR = 0.95
"""A speed-up of at least this share of the best one counts as near it."""
REACHED = 0.9
"""The share of the best speed-up whose first candidate is counted."""
T_95 = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13)
"""Student's t for a two-sided 95 % interval at 1, 2, ... degrees of freedom."""
T_95_MANY = 2.12
"""The same at 16 degrees of freedom, used for all larger numbers too: 1.96 without a limit."""
NOT_RESOLVED = "not resolved"
MAX_LOG = 20.0
"""Half-width of an interval that says nothing: a factor of 5e8."""


@dataclass
class TrajectoryFigures:
    """The figures of one trajectory."""

    best_by_judged: list[float] = field(default_factory=list)
    """The best candidate's speed-up after 1, 2, ... judged candidates; 0 without a correct one. It
    is the mean of the candidate's trials by then, so that many trials of one are no advantage."""
    selecting: dict[str, list[float]] = field(default_factory=dict)
    """Log speed-ups of the trials of each candidate, by its digest. A trial that was not correct
    counts as minus infinity. The trials at the end are left out."""
    final: list[float] = field(default_factory=list)
    """Speed-ups of the trials at the end."""
    lost_at_end: int = 0
    """Trials at the end whose verdict was not `correct`."""
    device_s: float = 0.0
    tokens: int = 0
    refused: int = 0
    """Drafts that were no candidate, or were never judged."""

    leader: str = ""
    """The candidate with the best mean of them; empty without a candidate."""

    def select(self, source: str, speedup: float | None) -> None:
        """Take in a trial that may select a candidate; `None` if it was not correct."""
        logarithm = -math.inf if speedup is None else math.log(speedup)
        self.selecting.setdefault(source, []).append(logarithm)
        if source == self.leader:
            # Its mean may have fallen below that of another one.
            self.leader = max(self.selecting, key=self._mean)
        elif not self.leader or self._mean(source) > self._mean(self.leader):
            self.leader = source

    def _mean(self, source: str) -> float:
        values = self.selecting[source]
        return sum(values) / len(values)

    @property
    def claimed(self) -> float | None:
        """Return the largest geometric mean of the trials that selected a candidate."""
        best = self._mean(self.leader) if self.leader else -math.inf
        return math.exp(best) if best > -math.inf else None

    @property
    def remeasured(self) -> float | None:
        """Return the geometric mean of the trials at the end; `None` unless all were correct."""
        if not self.final or self.lost_at_end:
            return None
        return math.exp(sum(map(math.log, self.final)) / len(self.final))

    @property
    def result(self) -> float:
        """Return the speed-up that counts: re-measured, else claimed; 1 if nothing was correct.

        A search without a correct candidate leaves its user with the reference. A winner that was
        wrong at the end does too.
        """
        if self.final or self.lost_at_end:
            return self.remeasured or 1.0
        return self.claimed or 1.0


Pair = tuple[str, int]
"""Problem and seed."""
Figures = dict[str, dict[Pair, TrajectoryFigures]]


def figures_of(turns: Iterable[Turn], strategies: Sequence[str], samples: int) -> Figures:
    """Return the figures of each trajectory, by strategy."""
    found: Figures = {name: defaultdict(TrajectoryFigures) for name in strategies}
    judged: dict[tuple[str, int], set[str]] = defaultdict(set)
    unjudged: dict[tuple[str, int], set[str]] = defaultdict(set)
    for turn in turns:
        place, seed = divmod(turn.ask.sample, samples)
        if place >= len(strategies):
            continue
        own = found[strategies[place]][turn.ask.problem, seed]
        key = turn.ask.problem, turn.ask.sample
        reply, item = turn.reply, turn.judgements[0] if turn.judgements else None
        own.tokens += reply.prompt_tokens + reply.reply_tokens if reply else 0
        if turn.ask.operator == REMEASURE:
            _take_final(own, turn)
            continue
        own.device_s += item.seconds if item else 0.0
        if turn.ask.role == "draft":
            unjudged[key].add(turn.ask.id)
        for parent in turn.ask.parents if turn.ask.role == "measure" else ():
            unjudged[key].discard(parent)
        own.refused = len(unjudged[key])
        if item is None or item.verdict == "unjudged" or not turn.source or turn.repeats:
            continue
        own.select(turn.source, item.speedup)
        if turn.ask.operator == FINAL_RACE:
            continue
        best = own.claimed or 0.0
        if turn.source in judged[key]:
            own.best_by_judged[-1] = best
        else:
            judged[key].add(turn.source)
            own.best_by_judged.append(best)
    return {name: dict(items) for name, items in found.items()}


def _share_of_wrong(items: Collection[TrajectoryFigures]) -> float | None:
    """Return the share of winners that were wrong at the end; `None` if none was measured again."""
    measured = [own for own in items if own.final or own.lost_at_end]
    return sum(own.lost_at_end > 0 for own in measured) / len(measured) if measured else None


def _take_final(own: TrajectoryFigures, turn: Turn) -> None:
    item = turn.judgements[0] if turn.judgements else None
    if item is None or item.verdict == "unjudged":
        return
    if item.verdict != "correct":
        own.lost_at_end += 1
    elif item.speedup is not None:
        own.final.append(item.speedup)


def strategy_table(
    turns: Iterable[Turn],
    strategies: Sequence[str],
    samples: int,
    best: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    """Return rows, regret curves and paired differences as one JSON document.

    `best` is the largest known speed-up of each problem; by default the largest re-measured one.
    """
    figures = figures_of(turns, strategies, samples)
    known = dict(best or {})
    if best is None:
        for items in figures.values():
            for (problem, _), own in items.items():
                known[problem] = max(known.get(problem, 1.0), own.result)
    rows = [_row(name, items, known) for name, items in figures.items() if items]
    return {
        "rows": rows,
        "curves": {name: _curve(items, known) for name, items in figures.items() if items},
        "differences": [
            _difference(one, other, figures[one], figures[other])
            for one, other in combinations([row["strategy"] for row in rows], 2)
        ],
    }


def _row(
    name: str, items: Mapping[Pair, TrajectoryFigures], known: Mapping[str, float]
) -> dict[str, Any]:
    logs = [math.log(own.result) for own in items.values()]
    count = len(items)
    near = [own.result >= NEAR * known[problem] for (problem, _), own in items.items()]
    reached = [
        number
        for (problem, _), own in items.items()
        if (number := _first(own.best_by_judged, REACHED * known[problem])) is not None
    ]
    claims = [
        math.log(own.claimed / own.remeasured)
        for own in items.values()
        if own.claimed and own.remeasured
    ]
    mean, low, high = mean_interval(logs)
    return {
        "strategy": name,
        "trajectories": count,
        "speedup": math.exp(mean),
        "low": math.exp(low),
        "high": math.exp(high),
        "near_best": sum(near) / count,
        "judged": sum(len(own.best_by_judged) for own in items.values()) / count,
        "judged_to_90": sum(reached) / len(reached) if reached else None,
        "reached_90": len(reached) / count,
        "area": sum(_area(own.best_by_judged) for own in items.values()) / count,
        "device_s": sum(own.device_s for own in items.values()) / count,
        "tokens": sum(own.tokens for own in items.values()) / count,
        "refused": sum(own.refused for own in items.values()) / count,
        "claimed_over_remeasured": math.exp(sum(claims) / len(claims)) if claims else None,
        "wrong_winners": _share_of_wrong(items.values()),
    }


def _first(values: Sequence[float], least: float) -> int | None:
    return next((place + 1 for place, value in enumerate(values) if value >= least), None)


def _area(values: Sequence[float]) -> float:
    """Return the mean natural logarithm of the best speed-up over the judged candidates."""
    return sum(math.log(max(value, 1.0)) for value in values) / len(values) if values else 0.0


def _curve(items: Mapping[Pair, TrajectoryFigures], known: Mapping[str, float]) -> list[float]:
    """Return the mean regret after 1, 2, ... candidates: log of the best known over the best."""
    length = max((len(own.best_by_judged) for own in items.values()), default=0)
    rows = []
    for number in range(length):
        regrets = []
        for (problem, _), own in items.items():
            values = own.best_by_judged
            best = values[min(number, len(values) - 1)] if values else 0.0
            regrets.append(math.log(known[problem] / max(best, 1.0)))
        rows.append(sum(regrets) / len(regrets))
    return rows


def _difference(
    one: str,
    other: str,
    ours: Mapping[Pair, TrajectoryFigures],
    theirs: Mapping[Pair, TrajectoryFigures],
) -> dict[str, Any]:
    """Return the mean ratio of two strategies over the pairs that both have, with its interval."""
    logs = [
        math.log(ours[key].result / theirs[key].result) for key in sorted(ours) if key in theirs
    ]
    mean, low, high = mean_interval(logs)
    resolved = low > 0 or high < 0
    better = (one if mean > 0 else other) if resolved else NOT_RESOLVED
    return {
        "strategies": [one, other],
        "pairs": len(logs),
        "ratio": math.exp(mean),
        "low": math.exp(low),
        "high": math.exp(high),
        "better": better,
    }


def mean_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return a mean and its 95 % interval by Student's t; one value has an unbounded interval."""
    count = len(values)
    if not count:
        return 0.0, -MAX_LOG, MAX_LOG
    mean = sum(values) / count
    if count == 1:
        return mean, mean - MAX_LOG, mean + MAX_LOG
    variance = sum((value - mean) ** 2 for value in values) / (count - 1)
    factor = T_95[count - 2] if count - 2 < len(T_95) else T_95_MANY
    half = factor * math.sqrt(variance / count)
    return mean, mean - half, mean + half
