"""Curves of published search systems on SynthKernel-1, against those of their originals.

A search begins with the reference, which is not counted. The reply to a request is a random unit
move of its parent, and a wrong program scores 0. `make originals` measures the original itself.
"""

from __future__ import annotations

import json
import math
import random
import statistics
import time
from pathlib import Path

from benchmarks.bars import Bar
from benchmarks.search.landscapes import moves
from tilewright.loop.strategies import openevolve
from tilewright.loop.strategies.base import Factory, Plan
from tilewright.records.events import Reply, Turn
from tilewright.testing.synth import REFERENCE, judge, parse, render

REPETITIONS = 400
MAX_STANDARD_ERRORS = 3.0
"""Most combined standard errors between two means at the last horizon."""
PROGRESS_S = 5.0
HORIZONS = (50, 100, 200, 500)
UNIFORM = 14.37
"""Mean of the best of 500 uniformly random programs (`benchmarks.search.synthetic`)."""
MEASURED = Path(__file__).with_name("openevolve_curves.json")
OPTIONS: dict[str, dict[str, object]] = {
    "defaults": {},
    "three_islands": {"islands": 3, "migration_interval": 10},
}
PUBLISHED = {
    "defaults": ((3.34, 4.27, 4.82, 7.02), 0.22),
    "three_islands": ((3.52, 4.79, 6.09, 9.74), 0.38),
}
"""Means of 20 earlier searches of the original, and the standard error of the last one."""


def speedup_or_zero(turn: Turn) -> float:
    """Return the score of a turn, as the originals' evaluators give it."""
    return turn.judgements[0].speedup or 0.0


def best_so_far(make: Factory, options: dict[str, object], seed: int) -> list[float]:
    """Run one search; return its best speed-up at each horizon."""
    plan = Plan(problem="synth", turns=HORIZONS[-1] + 1, seed=seed, options=options)
    strategy = make(plan, speedup_or_zero)
    texts: dict[str, str] = {}
    best, curve = 0.0, []
    while asks := strategy.ask(1):
        ask = asks[0]
        text = render(REFERENCE)
        if texts:
            parent = parse(texts[ask.parents[0]])
            if isinstance(parent, str):
                raise TypeError(parent)
            text = render(random.Random(f"{seed}/{ask.id}").choice(moves(parent)))
        turn = Turn(ask=ask, reply=Reply(text=text), source=text, judgements=(judge(text),))
        strategy.tell(turn)
        if texts:
            best = max(best, speedup_or_zero(turn))
        texts[ask.id] = text
        if len(texts) - 1 in HORIZONS:
            curve.append(best)
    return curve


def _bar(name: str) -> Bar:
    start = printed = time.monotonic()
    curves = []
    for seed in range(REPETITIONS):
        curves.append(best_so_far(openevolve.make, OPTIONS[name], seed))
        now = time.monotonic()
        if now - printed > PROGRESS_S:
            printed = now
            print(
                f"openevolve, {name}: {seed + 1} of {REPETITIONS}, {now - start:.0f} s", flush=True
            )
    columns = list(zip(*curves, strict=True))
    means = [statistics.fmean(column) for column in columns]
    errors = [statistics.stdev(column) / REPETITIONS**0.5 for column in columns]
    published, published_error = PUBLISHED[name]
    again = json.loads(MEASURED.read_text(encoding="utf-8"))["rows"][name]
    off = {
        "published": _off(means[-1], errors[-1], published[-1], published_error),
        "measured again": _off(
            means[-1], errors[-1], again["means"][-1], again["standard_errors"][-1]
        ),
    }
    print(
        f"openevolve, {name}: off at {HORIZONS[-1]} by {off} combined standard errors", flush=True
    )
    return Bar(
        f"synth: best of openevolve, {name}, after {', '.join(map(str, HORIZONS))}",
        f"{_row(published)} (published), {_row(again['means'])} (measured again), "
        f"the last within {MAX_STANDARD_ERRORS:g} standard errors",
        _row(means),
        max(map(abs, off.values())) <= MAX_STANDARD_ERRORS,
        {
            "means": means,
            "standard_errors": errors,
            "combined_standard_errors_off": off,
            "repetitions": REPETITIONS,
        },
    )


def _off(mean: float, error: float, wanted: float, wanted_error: float) -> float:
    return (mean - wanted) / math.hypot(error, wanted_error)


def _row(values: list[float] | tuple[float, ...]) -> str:
    return " ".join(f"{value:.2f}" for value in values)


def bars(only: str) -> list[Bar]:
    """Return the bars of the curves whose name, `openevolve_...`, contains `only`."""
    found = [_bar(name) for name in OPTIONS if only in f"openevolve_{name}"]
    if not found:
        return []
    # Blind moves leave evolution behind: nobody may read these curves as a success of it.
    best = max(bar.details["means"][-1] for bar in found)
    lost = Bar(
        f"synth: uniform random programs beat openevolve after {HORIZONS[-1]}",
        f"below {UNIFORM:.2f}",
        f"{best:.2f}",
        best < UNIFORM,
    )
    return [*found, lost]
