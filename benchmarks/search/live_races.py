"""Bars: races with the real judge on a CPU, of equal kernels and of one that is 5 % slower.

Each trial is a whole evaluation. Contenders are copies of one kernel in C++; the slower one waits
for 5 % of its own time after its work.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from benchmarks.accuracy.aa import requests
from benchmarks.bars import Bar, executor
from tilewright.executors.local import LocalExecutor
from tilewright.loop.estimates import trial_of
from tilewright.loop.racing import Contender, Outcome, RaceRules, next_trials, outcome, with_trial
from tilewright.records import EvalRequest
from tilewright.records.events import EvalSummary

KERNELS = ("gelu", "tanh", "sine", "exp")
RACES = 20
COPIES = 4
DELAY = 0.05
LEAST_TIES = 19
RULES = RaceRules(max_trials=16)
MINUTES = 25


def race(local: LocalExecutor, entrants: Sequence[EvalRequest]) -> tuple[Outcome, int]:
    """Return the outcome of a race between candidates, and the number of its trials."""
    found = {str(place): Contender(str(place)) for place in range(len(entrants))}
    while names := next_trials(list(found.values()), RULES):
        for name in names:
            report = local.evaluate(entrants[int(name)])
            item = report.comparisons[0] if report.comparisons else None
            said = EvalSummary(
                protocol="strict",
                verdict=report.verdict,
                speedup=item.speedup if item else None,
                low=item.speedup_low if item else None,
                high=item.speedup_high if item else None,
            )
            found[name] = with_trial(found[name], trial_of(said))
    contenders = list(found.values())
    return outcome(contenders, RULES), sum(item.trials for item in contenders)


def run(match: str = "", *, races: int = RACES) -> list[Bar]:
    """Make the races of the kernels whose names contain `match`."""
    kernels = [name for name in KERNELS if match in name]
    begun, trials, ties, won = time.monotonic(), 0, 0, 0
    with executor() as local:
        for number in range(races):
            title = f"cpp {kernels[number % len(kernels)]}"
            ((_, same),) = requests(0.0, title)
            ((_, slow),) = requests(DELAY, title)
            equal, count = race(local, [same] * COPIES)
            ties += len(equal.tied) == COPIES - 1
            slower, more = race(local, [same, slow])
            won += slower.best == "1"
            trials += count + more
            print(
                f"{number + 1} of {races}, {title}: {count} trials, "
                f"{len(equal.tied) + 1} of {COPIES} tied; the slower one "
                f"{'wins' if slower.best == '1' else 'loses'} after {more}; "
                f"{time.monotonic() - begun:.0f} s",
                flush=True,
            )
    minutes = (time.monotonic() - begun) / 60
    least = -(-LEAST_TIES * races // RACES)
    return [
        Bar(
            "races: copies of one kernel tie",
            f"all {COPIES} in >= {least} of {races}",
            f"{ties} of {races}",
            ties >= least,
        ),
        Bar(
            "races: a copy slowed by 5 % wins",
            f"0 of {races}, all races under {MINUTES} minutes",
            f"{won}, {trials} trials in {minutes:.1f} minutes",
            won == 0 and minutes < MINUTES,
        ),
    ]
