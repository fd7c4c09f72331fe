"""Bars of races: simulated ones against equal allocation, and the bias of reported speed-ups.

Equal allocation gives each candidate the same number of trials and takes the best mean. It needs
the smallest number with which the wrong candidate wins at most 5 % of races; it is told how large
the lead is, and a race is not.
"""

from __future__ import annotations

import math
import os
import random
import statistics
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks.bars import Bar
from benchmarks.search.system_runs import search, settings_of
from tilewright.loop.candidate_text import code_of
from tilewright.loop.racing import Contender, RaceRules, next_trials, outcome
from tilewright.records.event_log import read_events
from tilewright.records.events import Turn, TurnFinished
from tilewright.scoring.strategy_table import REMEASURE
from tilewright.testing.synth import judge
from tilewright.testing.synth_world import NoisySynthWorld

SPREADS = (0.007, 0.015, 0.03)
"""Standard deviations of a trial: 0.7 % is that of a quiet machine."""
LEADS = (0.01, 0.02, 0.03, 0.05)
CANDIDATES = 8
RACES = 2000
MAX_WRONG = 0.05
COUNTED_LEAD = 0.02
"""Least lead for which a wrong winner counts."""
MANY = 7
"""Trials of each candidate from which a race must save trials of equal allocation."""
MAX_SHARE = 0.7
MAX_EXTRA = 2
"""Trials of each candidate that a race may take more where equal allocation needs few."""
UNLIMITED = 10**6
EQUAL_RACES = 4000
SEARCHES = 400
TURNS = 30
FINAL_TRIALS = 4
NOISE = 0.03
MAX_BIAS = 0.005


@dataclass(frozen=True)
class Races:
    """Races with one spread and one lead."""

    spread: float
    lead: float
    wrong: float
    trials: float
    """Mean of a race."""
    equal: int
    """Trials of each candidate that equal allocation needs."""

    @property
    def held(self) -> bool:
        """Tell whether the bar holds."""
        if self.lead >= COUNTED_LEAD and self.wrong > MAX_WRONG:
            return False
        if self.equal >= MANY:
            return self.trials <= MAX_SHARE * self.equal * CANDIDATES
        return self.trials <= (self.equal + MAX_EXTRA) * CANDIDATES


def simulated(spread: float, lead: float, races: int = RACES) -> Races:
    """Return the result of races in which candidate j is j leads behind the best one."""
    means = [-place * lead for place in range(CANDIDATES)]
    draw = random.Random(f"{spread}/{lead}")
    rules, wrong, trials = RaceRules(max_trials=UNLIMITED), 0, 0
    for _ in range(races):
        entrants = {str(place): Contender(str(place)) for place in range(CANDIDATES)}
        while names := next_trials(list(entrants.values()), rules):
            for name in names:
                item = entrants[name]
                value = draw.gauss(means[int(name)], spread)
                values, errors = (*item.values, value), (*item.errors, spread)
                entrants[name] = Contender(name, values, errors)
        wrong += outcome(list(entrants.values()), rules).best != "0"
        trials += sum(item.trials for item in entrants.values())
    return Races(spread, lead, wrong / races, trials / races, equal_trials(means, spread))


def equal_trials(means: list[float], spread: float) -> int:
    """Return the smallest equal number of trials with at most 5 % wrong winners."""
    draw, count = random.Random(1), 0
    noise = [[draw.gauss(0.0, spread) for _ in means] for _ in range(EQUAL_RACES)]
    while True:
        count += 1
        scale = 1 / math.sqrt(count)
        wrong = 0
        for errors in noise:
            seen = [mean + scale * error for mean, error in zip(means, errors, strict=True)]
            wrong += max(seen) > seen[0]
        if wrong <= MAX_WRONG * EQUAL_RACES:
            return count


def _simulated(pair: tuple[float, float]) -> Races:
    return simulated(*pair)


def races() -> Bar:
    """Simulate all spreads and leads."""
    pairs = [(spread, lead) for spread in SPREADS for lead in LEADS]
    # The longest ones first, so that both cores are busy at the end.
    pairs.sort(key=lambda pair: pair[1] / pair[0])
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        found = []
        for item in pool.map(_simulated, pairs):
            found.append(item)
            print(
                f"spread {item.spread:.1%}, lead {item.lead:.0%}: wrong {item.wrong:.2%}, "
                f"{item.trials:.1f} trials, equal allocation {item.equal * CANDIDATES}",
                flush=True,
            )
    worst = max(item.wrong for item in found if item.lead >= COUNTED_LEAD)
    shares = [item.trials / item.equal / CANDIDATES for item in found if item.equal >= MANY]
    extra = [item.trials / CANDIDATES - item.equal for item in found if item.equal < MANY]
    seen = (
        f"wrong {worst:.2%}; {min(shares):.0%} to {max(shares):.0%} of the trials; elsewhere at "
        f"most {max(extra):.1f} more each"
    )
    wanted = "wrong <= 5 %; <= 70 % of equal allocation's trials, elsewhere <= 2 more each"
    details = {f"{item.spread} {item.lead}": item.__dict__ for item in found}
    return Bar("systems: racing", wanted, seen, all(item.held for item in found), details)


def selection_bias() -> Bar:
    """Compare reported and true speed-ups of noisy searches, with a race and without one."""
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(_biases, range(SEARCHES), chunksize=20))
    reported, claimed = (statistics.fmean(column) for column in zip(*found, strict=True))
    seen = f"{reported:+.2%}; the best trial of a search, without a race {claimed:+.2%}"
    wanted = f"within {MAX_BIAS:.1%} of the truth in the mean of {SEARCHES} searches"
    return Bar("systems: selection bias", wanted, seen, abs(reported) <= MAX_BIAS)


def _biases(seed: int) -> tuple[float, float]:
    """Return log ratios to the truth: of the reported speed-up, and of the best trial's."""
    settings = settings_of("best_of_n", 4, seed=seed, turns=TURNS, final_trials=FINAL_TRIALS)
    with tempfile.TemporaryDirectory() as folder:
        search(Path(folder), settings, NoisySynthWorld(NOISE, seed))
        events = list(read_events(Path(folder)))
    turns = [event.turn for event in events if isinstance(event, TurnFinished)]
    final = [turn for turn in turns if turn.ask.operator == REMEASURE]
    first = max((turn for turn in turns if turn.ask.role == "propose"), key=_log_speedup)
    return statistics.fmean(_bias(turn) for turn in final), _bias(first)


def _log_speedup(turn: Turn) -> float:
    speedup = turn.judgements[0].speedup if turn.judgements else None
    return math.log(speedup) if speedup else -math.inf


def _bias(turn: Turn) -> float:
    truth = judge(code_of(turn)).speedup
    if truth is None:
        raise RuntimeError(f"{turn.ask.id}: a winner that is not correct")
    return _log_speedup(turn) - math.log(truth)
