"""Estimates: the pooled trials of one candidate.

A trial is one evaluation of a candidate. Trials are pooled only if problem, code, protocol and
condition (device model, baselines, evaluator version) are equal. An estimate whose trials are all
unjudged is empty.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from tilewright.records.events import EvalSummary, Turn
from tilewright.records.outcome import Verdict

WORST_FIRST: tuple[Verdict, ...] = ("rejected", "failed", "incorrect", "correct")
"""A candidate is as good as the worst of its judged trials."""
NORMAL_95 = 1.959964
"""Half-width of a 95 % interval of a normal distribution, in standard deviations."""
Key = tuple[str, int, str, str, str]
"""Problem, trajectory, digest of the code, protocol, condition. Trajectories are compared with each
other, so none gets another one's trials."""


@dataclass(frozen=True)
class Trial:
    """One evaluation: the natural logarithm of its speed-up and that one's standard error."""

    verdict: Verdict
    log_speedup: float | None = None
    error: float | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class Estimate:
    """Pooled trials of one candidate; unjudged ones are counted only in `unjudged`."""

    trials: tuple[Trial, ...] = ()
    unjudged: int = 0

    @property
    def verdict(self) -> Verdict | None:
        """Return the worst verdict; `None` while no trial was judged."""
        seen = {trial.verdict for trial in self.trials}
        return next((verdict for verdict in WORST_FIRST if verdict in seen), None)

    @property
    def log_speedup(self) -> float | None:
        """Return the mean natural logarithm of the speed-ups; `None` unless correct and timed."""
        values = self._values()
        return sum(values) / len(values) if values else None

    @property
    def speedup(self) -> float | None:
        """Return the geometric mean of the speed-ups; `None` unless correct and timed."""
        return None if self.log_speedup is None else math.exp(self.log_speedup)

    @property
    def interval(self) -> tuple[float, float] | None:
        """Return the 95 % interval of the speed-up.

        Its error is the larger one of two: the pooled error that the trials state, and the scatter
        between them.
        """
        mean, values = self.log_speedup, self._values()
        if mean is None:
            return None
        count = len(values)
        stated = math.sqrt(sum((trial.error or 0.0) ** 2 for trial in self._timed())) / count
        scatter = 0.0
        if count > 1:
            variance = sum((value - mean) ** 2 for value in values) / (count - 1)
            scatter = math.sqrt(variance / count)
        half = NORMAL_95 * max(stated, scatter)
        return math.exp(mean - half), math.exp(mean + half)

    def _timed(self) -> list[Trial]:
        if self.verdict != "correct":
            return []
        return [trial for trial in self.trials if trial.log_speedup is not None]

    def _values(self) -> list[float]:
        return [value for trial in self._timed() if (value := trial.log_speedup) is not None]


EMPTY = Estimate()


def with_estimate(turn: Turn, estimate: Estimate) -> Turn:
    """Return a turn whose first judgement holds the pooled speed-up and its interval."""
    if estimate.speedup is None or estimate.interval is None or not turn.judgements:
        return turn
    low, high = estimate.interval
    pooled = turn.judgements[0].model_copy(
        update={"speedup": estimate.speedup, "low": low, "high": high}
    )
    return turn.model_copy(update={"judgements": (pooled, *turn.judgements[1:])})


def trial_of(judgement: EvalSummary) -> Trial | None:
    """Return the trial of a judgement; `None` if the candidate was not judged."""
    if judgement.verdict == "unjudged":
        return None
    log_speedup = math.log(judgement.speedup) if judgement.speedup else None
    error = None
    if judgement.low and judgement.high:
        error = math.log(judgement.high / judgement.low) / (2 * NORMAL_95)
    return Trial(judgement.verdict, log_speedup, error, judgement.seconds)


@dataclass
class Estimates:
    """The estimates of a search, by code. Lifetime: one run; replay rebuilds it."""

    _known: dict[Key, Estimate] = field(default_factory=dict)
    _key_of: dict[str, Key] = field(default_factory=dict)

    def add(self, turn: Turn) -> None:
        """Take in the trials of a turn; one that repeats known code adds none."""
        if not turn.source:
            return
        condition = turn.judgements[0].condition if turn.judgements else ""
        protocol = turn.judgements[0].protocol if turn.judgements else ""
        key = (turn.ask.problem, turn.ask.sample, turn.source, protocol, condition)
        self._key_of[turn.ask.id] = key
        if not turn.judgements:
            # A draft: the request that judges it has its code.
            return
        for parent in turn.ask.parents if turn.ask.role == "measure" else ():
            self._key_of[parent] = key
        if not turn.repeats:
            before = self._known.get(key, EMPTY)
            trial = trial_of(turn.judgements[0])
            pooled = before.trials if trial is None else (*before.trials, trial)
            self._known[key] = Estimate(pooled, before.unjudged + (trial is None))

    def of(self, ask: str) -> Estimate:
        """Return the estimate of a request's candidate; an empty one if it has none."""
        key = self._key_of.get(ask)
        return EMPTY if key is None else self._known.get(key, EMPTY)

    def snapshot(self, asks: tuple[str, ...]) -> Mapping[str, Estimate]:
        """Return the present estimates of some requests."""
        return {ask: self.of(ask) for ask in asks}
