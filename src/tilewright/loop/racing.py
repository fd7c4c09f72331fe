"""Races: which of some candidates gets the next trial, and when their order is known. Pure.

The sampling rule is that of LUCB (Kalyanakrishnan et al. 2012, "PAC Subset Selection in Stochastic
Multi-armed Bandits", section 3). The leader and its strongest challenger get a trial each. The stop
rule is a sequential probability ratio test (Wald 1945, "Sequential Tests of Statistical
Hypotheses", section 3) of each challenger against the leader.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

from tilewright.loop.estimates import Estimate, Trial, trial_of
from tilewright.records.events import Turn

MIN_SPREAD = 0.001
"""Least standard deviation of a trial's log speed-up: clocks and a few trials can look exact."""


@dataclass(frozen=True)
class RaceRules:
    """When a race ends."""

    tie: float = 0.01
    """Difference of log speed-ups up to which candidates are equally good (1 %)."""
    lead: float = 0.02
    """Difference for which the test is planned (2 %). Another one costs more trials, and the bound
    of the error holds as well."""
    error: float = 0.05
    """Largest probability that a race excludes a candidate that leads by the tie or more."""
    false_difference: float = 0.01
    """Nominal probability that a race calls one of several equal candidates slower. Its limits hold
    for one look, and a race looks several times."""
    first_trials: int = 2
    """Trials of each candidate before any is excluded."""
    max_trials: int = 64
    """Most trials of a whole race."""


@dataclass(frozen=True)
class Contender:
    """A candidate of a race and the trials that it has had in it."""

    name: str
    values: tuple[float, ...] = ()
    """Natural logarithms of the speed-ups."""
    errors: tuple[float, ...] = ()
    """Their stated standard errors."""
    lost: int = 0
    """Trials that were not judged."""
    failed: bool = False
    """Whether a trial was judged and was not correct: it cannot win."""

    @property
    def trials(self) -> int:
        """Return the number of its trials, also of lost ones and of the one that failed."""
        return len(self.values) + self.lost + self.failed

    @property
    def mean(self) -> float:
        """Return the mean of its trials."""
        return math.fsum(self.values) / len(self.values)


@dataclass(frozen=True)
class Outcome:
    """How a race stands."""

    best: str | None
    """The candidate with the best mean; `None` if none has a correct trial."""
    tied: tuple[str, ...] = ()
    """Candidates that were not shown to be slower than it."""
    settled: bool = False
    """Whether every other one is excluded. Otherwise the race goes on, or met its limit."""


def spread(contenders: Sequence[Contender]) -> float:
    """Return the standard deviation of one trial: the stated one, unless the scatter refutes it.

    The scatter is pooled over candidates. It counts if it is larger than 95 % of scatters would be
    if the stated deviation held (a chi-squared test).
    """
    stated = [error * error for item in contenders for error in item.errors]
    given = math.fsum(stated) / len(stated) if stated else 0.0
    free = sum(max(len(item.values) - 1, 0) for item in contenders)
    residuals = math.fsum(
        (value - item.mean) ** 2 for item in contenders if item.values for value in item.values
    )
    if free and residuals > given * _chi_squared_95(free):
        given = residuals / free
    return max(math.sqrt(given), MIN_SPREAD)


def _chi_squared_95(free: int) -> float:
    """Return the 95 % quantile, as Wilson and Hilferty approximate it (1931)."""
    part = 2 / (9 * free)
    return float(free * (1 - part + 1.644854 * math.sqrt(part)) ** 3)


def next_trials(contenders: Sequence[Contender], rules: RaceRules) -> tuple[str, ...]:
    """Return the candidates that get the next trial; none at the end of the race.

    They are all candidates with too few trials, and then the leader and its challenger.
    """
    running = [item for item in contenders if not item.failed]
    spent = sum(item.trials for item in contenders)
    left = rules.max_trials - spent
    if left <= 0 or len(running) < 2:
        return ()
    young = [item for item in running if item.trials < rules.first_trials]
    if young:
        fewest = min(item.trials for item in young)
        return tuple(item.name for item in young if item.trials == fewest)[:left]
    timed = [item for item in running if item.values]
    if len(timed) < 2:
        return ()
    leader, others = _challengers(timed, rules)
    if not others:
        return ()
    width = spread(timed) * math.sqrt(2 * math.log(len(contenders) / rules.error))
    challenger = max(others, key=lambda item: item.mean + width / math.sqrt(len(item.values)))
    return (leader.name, challenger.name)[:left]


def outcome(contenders: Sequence[Contender], rules: RaceRules) -> Outcome:
    """Return how a race stands after the trials so far."""
    timed = [item for item in contenders if item.values and not item.failed]
    if not timed:
        return Outcome(None)
    leader, others = _challengers(timed, rules)
    tried = all(item.trials >= rules.first_trials for item in contenders if not item.failed)
    deviation, limit = spread(timed), _limit(len(timed), rules.false_difference)
    tied = tuple(
        item.name
        for item in timed
        if item is not leader
        and leader.mean - item.mean < limit * deviation * _root_of_inverses(leader, item)
    )
    return Outcome(leader.name, tied, not others and tried)


def _challengers(timed: Sequence[Contender], rules: RaceRules) -> tuple[Contender, list[Contender]]:
    """Return the leader and those whose order against it is open.

    Two cases are compared: the leader is `lead` ahead of a candidate, or `tie` behind it. The
    candidate is excluded if the data favour the first case by given odds. The odds are the number
    of challengers divided by `error`. If it leads by the tie or more, this happens at any time with
    at most the probability `error` in all (Ville's inequality). A candidate is equally good if the
    leader's advantage was shown to be below the tie.
    """
    leader = max(timed, key=lambda item: item.mean)
    deviation, limit = spread(timed), _limit(len(timed), rules.error)
    odds = math.log(max(len(timed) - 1, 1) / rules.error)
    others = []
    for item in timed:
        if item is leader:
            continue
        ahead, error = leader.mean - item.mean, deviation * _root_of_inverses(leader, item)
        fit_ahead, fit_behind = (ahead - rules.lead) / error, (ahead + rules.tie) / error
        excluded = (fit_behind**2 - fit_ahead**2) / 2 >= odds
        equal = ahead + limit * error <= rules.tie
        if not excluded and not equal:
            others.append(item)
    return leader, others


def _limit(count: int, error: float) -> float:
    """Return the normal quantile beyond which the difference of any pair is no chance."""
    pairs = count * (count - 1)
    return NormalDist().inv_cdf(1 - error / pairs) if pairs else 0.0


def _root_of_inverses(first: Contender, second: Contender) -> float:
    return math.sqrt(1 / len(first.values) + 1 / len(second.values))


def rivals(ranked: Sequence[tuple[str, Estimate]], most: int) -> list[str]:
    """Return the candidates that may be the best: their intervals overlap with that of the first.

    `ranked` holds candidates with their estimates, the best first. The result is
    empty if there is no second one, or if the first has no stated error.
    """
    first = ranked[0][1].interval if ranked else None
    if first is None or first[0] == first[1]:
        return []
    found = [
        name
        for name, estimate in ranked
        if estimate.interval is not None and estimate.interval[1] >= first[0]
    ][:most]
    return found if len(found) > 1 else []


class Race:
    """A race whose trials are requests of a strategy. Lifetime: one race."""

    def __init__(self, entrants: Iterable[Contender], rules: RaceRules) -> None:
        self._rules = rules
        self._entrants = {item.name: item for item in entrants}
        self._awaited = Counter[str]()

    @property
    def entrants(self) -> tuple[Contender, ...]:
        """Return the candidates with their trials so far."""
        return tuple(self._entrants.values())

    @property
    def outcome(self) -> Outcome:
        """Return how the race stands."""
        return outcome(self.entrants, self._rules)

    def due(self, limit: int) -> tuple[str, ...]:
        """Return at most `limit` candidates that get a trial now.

        There are none while a trial is awaited, and none at the end.
        """
        if self._awaited.total():
            return ()
        names = next_trials(self.entrants, self._rules)[:limit]
        self._awaited.update(names)
        return names

    @property
    def over(self) -> bool:
        """Tell whether no trial is awaited and none is due."""
        return not self._awaited.total() and not next_trials(self.entrants, self._rules)

    def take(self, name: str, turn: Turn) -> None:
        """Take in the trial of a candidate."""
        self._awaited[name] -= 1
        trial = trial_of(turn.judgements[0]) if turn.judgements else None
        self._entrants[name] = with_trial(self._entrants[name], trial)


def with_trial(contender: Contender, trial: Trial | None) -> Contender:
    """Return a candidate after one more trial; `None` is a trial that was not judged."""
    if trial is None:
        return replace(contender, lost=contender.lost + 1)
    if trial.verdict != "correct" or trial.log_speedup is None:
        return replace(contender, failed=True)
    return replace(
        contender,
        values=(*contender.values, trial.log_speedup),
        errors=(*contender.errors, trial.error or 0.0),
    )
