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
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.bars import Bar
from benchmarks.search.landscapes import moves
from benchmarks.search.system_runs import search, settings_of
from tilewright.loop.candidate_text import code_of
from tilewright.loop.policies.base import Message
from tilewright.loop.racing import Contender, RaceRules, next_trials, outcome
from tilewright.loop.random_values import chooser
from tilewright.records.event_log import read_events
from tilewright.records.events import Ask, Turn, TurnFinished
from tilewright.scoring.strategy_table import FINAL_RACE, REMEASURE
from tilewright.testing.synth import OPTIMUM, judge, render
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
    """Compare reported and true speed-ups of noisy searches, with a race and without one.

    A reply is a program near the optimum, so that several are nearly as fast as the best one.
    """
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(noisy_search, range(SEARCHES), chunksize=20))
        plain = list(pool.map(partial(noisy_search, candidates=0), range(SEARCHES), chunksize=20))
    bias = statistics.fmean(item.reported for item in found)
    claimed = statistics.fmean(item.claimed for item in plain)
    raced = sum(item.raced for item in found)
    behind, alone = (statistics.fmean(item.behind for item in items) for items in (found, plain))
    seen = (
        f"{bias:+.2%}, {raced} raced; without a race the best trial claims {claimed:+.2%}. "
        f"The winner is {behind:.2%} behind the best program, without a race {alone:.2%}"
    )
    wanted = f"within {MAX_BIAS:.1%} of the truth in the mean of {SEARCHES} searches, half raced"
    held = abs(bias) <= MAX_BIAS and raced >= SEARCHES / 2
    return Bar("systems: selection bias", wanted, seen, held)


@dataclass(frozen=True)
class NoisySearch:
    """Log ratios of one search."""

    reported: float
    """The reported speed-up over the true one of its program."""
    claimed: float
    """The best trial over the true speed-up of its program."""
    behind: float
    """The true speed-up of the best program written over that of the winner."""
    raced: bool


def noisy_search(seed: int, candidates: int = 3) -> NoisySearch:
    """Return the figures of one search; no more than `candidates` race."""
    more = {"final_trials": FINAL_TRIALS, "race_candidates": candidates}
    settings = settings_of("best_of_n", 4, seed=seed, turns=TURNS, **more)

    def write(_: Sequence[Message], ask: Ask) -> str:
        draw = chooser(seed, ask.id, "near the optimum")
        program = OPTIMUM
        for _step in range(draw.randint(1, 2)):
            program = draw.choice(moves(program))
        return render(program)

    with tempfile.TemporaryDirectory() as folder:
        search(Path(folder), settings, NoisySynthWorld(NOISE, seed), write)
        events = list(read_events(Path(folder)))
    turns = [event.turn for event in events if isinstance(event, TurnFinished)]
    final = [turn for turn in turns if turn.ask.operator == REMEASURE]
    written = [turn for turn in turns if turn.ask.role == "propose" and _truth(turn) is not None]
    best = max(_truth(turn) or 0.0 for turn in written)
    return NoisySearch(
        reported=statistics.fmean(_bias(turn) for turn in final),
        claimed=_bias(max(written, key=_log_speedup)),
        behind=math.log(best / (_truth(final[0]) or 1.0)),
        raced=any(turn.ask.operator == FINAL_RACE for turn in turns),
    )


def _truth(turn: Turn) -> float | None:
    return judge(code_of(turn)).speedup


def _log_speedup(turn: Turn) -> float:
    speedup = turn.judgements[0].speedup if turn.judgements else None
    return math.log(speedup) if speedup else -math.inf


def _bias(turn: Turn) -> float:
    truth = _truth(turn)
    if truth is None:
        raise RuntimeError(f"{turn.ask.id}: a winner that is not correct")
    return _log_speedup(turn) - math.log(truth)
