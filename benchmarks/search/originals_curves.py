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
from dataclasses import dataclass
from pathlib import Path

from benchmarks.bars import Bar
from benchmarks.search.landscapes import moves
from tilewright.loop.strategies import kernel_evolve, openevolve, polca
from tilewright.loop.strategies.base import Factory, Plan
from tilewright.records.events import Ask, Reply, Turn
from tilewright.testing.synth import LEVELS, REFERENCE, Program, judge, parse, render

REPETITIONS = 400
MAX_STANDARD_ERRORS = 3.0
"""Most combined standard errors between two means at the last horizon."""
PROGRESS_S = 5.0
HORIZONS = (50, 100, 200, 500)
MAX_WIDE = 2.0
"""Best speed-up that POLCA stays below if epsilon is wider than a move (issue on search)."""
UNIFORM = 14.37
"""Mean of the best of 500 uniformly random programs (`benchmarks.search.synthetic`)."""
MEASURED = Path(__file__).with_name("openevolve_curves.json")
UNLIMITED = 10 * HORIZONS[-1]
"""Requests of a search, drafts among them, that ends at the last horizon."""


@dataclass(frozen=True)
class Curve:
    """A published system with options, and the curve of its original."""

    system: str
    options: dict[str, object]
    means: tuple[float, ...]
    """Means of earlier searches of the original at the horizons."""
    error: float
    """Standard error of the last one."""


POLCA = {"candidates": 5, "priority": "mean", "summary": False}
CURVES = {
    "openevolve, defaults": Curve("openevolve", {}, (3.34, 4.27, 4.82, 7.02), 0.22),
    "openevolve, three_islands": Curve(
        "openevolve", {"islands": 3, "migration_interval": 10}, (3.52, 4.79, 6.09, 9.74), 0.38
    ),
    "polca, epsilon 0": Curve("polca", {**POLCA, "epsilon": 0}, (3.10, 5.05, 8.43, 16.44), 0.65),
    "polca, epsilon .05": Curve(
        "polca", {**POLCA, "epsilon": 0.05}, (2.93, 5.18, 9.42, 18.52), 0.56
    ),
    "polca, epsilon .3": Curve("polca", {**POLCA, "epsilon": 0.3}, (1.23, 1.38, 1.46, 1.46), 0.01),
}
MAKERS: dict[str, Factory] = {"openevolve": openevolve.make, "polca": polca.make}


def speedup_or_zero(turn: Turn) -> float:
    """Return the score of a turn, as the originals' evaluators give it."""
    return turn.judgements[0].speedup or 0.0


def embedding(program: Program) -> tuple[float, ...]:
    """Return the place of each level between 0 and 1, and half a unit for each bit of `fuse`."""
    found = []
    for name, levels in LEVELS.items():
        value = getattr(program, name)
        if name == "fuse":
            found += [0.5 * (value >> bit & 1) for bit in range(3)]
        else:
            found.append(levels.index(value) / (len(levels) - 1))
    return tuple(found)


def best_so_far(make: Factory, options: dict[str, object], seed: int) -> list[float]:
    """Run one search; return its best speed-up after as many evaluations as each horizon.

    The first program is the reference. A strategy that proposes it does not count its evaluation; a
    strategy that measures drafts counts all.
    """
    plan = Plan(problem="synth", turns=UNLIMITED, seed=seed, options=options)
    strategy = make(plan, speedup_or_zero)
    texts: dict[str, str] = {}
    curve: list[float] = []
    best, count = 0.0, 0
    while len(curve) < len(HORIZONS):
        (ask,) = strategy.ask(1)
        text = _text(ask, texts, seed)
        texts[ask.id] = text
        program = parse(text)
        if isinstance(program, str):
            raise TypeError(program)
        turn = Turn(ask=ask, reply=Reply(text=text), source=text, embedding=embedding(program))
        if ask.role != "draft":
            turn = turn.model_copy(update={"judgements": (judge(text),)})
        strategy.tell(turn)
        if ask.role == "draft" or (ask.role == "propose" and not ask.parents):
            continue
        best, count = max(best, speedup_or_zero(turn)), count + 1
        if count in HORIZONS:
            curve.append(best)
    return curve


def _text(ask: Ask, texts: dict[str, str], seed: int) -> str:
    """Return the program of a request: the reference, that to measure, or a move of the parent."""
    if not ask.parents:
        return render(REFERENCE)
    parent = texts[ask.parents[0]]
    if ask.role == "measure":
        return parent
    program = parse(parent)
    if isinstance(program, str):
        raise TypeError(program)
    return render(random.Random(f"{seed}/{ask.id}").choice(moves(program)))


def _bar(name: str) -> Bar:
    curve, start = CURVES[name], time.monotonic()
    printed, curves = start, []
    for seed in range(REPETITIONS):
        curves.append(best_so_far(MAKERS[curve.system], curve.options, seed))
        now = time.monotonic()
        if now - printed > PROGRESS_S:
            printed = now
            print(f"{name}: {seed + 1} of {REPETITIONS}, {now - start:.0f} s", flush=True)
    columns = list(zip(*curves, strict=True))
    means = [statistics.fmean(column) for column in columns]
    errors = [statistics.stdev(column) / REPETITIONS**0.5 for column in columns]
    off = {"published": _off(means[-1], errors[-1], curve.means[-1], curve.error)}
    wanted = f"{_row(curve.means)} (published)"
    again = json.loads(MEASURED.read_text(encoding="utf-8"))["rows"].get(name.split(", ")[1])
    if curve.system == "openevolve":
        last = again["means"][-1], again["standard_errors"][-1]
        off["measured again"] = _off(means[-1], errors[-1], *last)
        wanted += f", {_row(again['means'])} (measured again)"
    print(f"{name}: off at {HORIZONS[-1]} by {off} combined standard errors", flush=True)
    return Bar(
        f"synth: best of {name}, after {', '.join(map(str, HORIZONS))}",
        f"{wanted}, the last within {MAX_STANDARD_ERRORS:g} standard errors",
        _row(means),
        max(map(abs, off.values())) <= MAX_STANDARD_ERRORS,
        {
            "means": means,
            "standard_errors": errors,
            "combined_standard_errors_off": off,
            "repetitions": REPETITIONS,
        },
    )


BASIN = 12.38
"""Just above the second local optimum under unit moves, in which greedy searches end."""
ESCAPE_RUNS = 40
MAX_CHANCE = 0.01


def escapes() -> Bar:
    """Count searches by `uct` and by `greedy` that leave the basin of the second optimum."""
    counts = {}
    for selection in ("uct", "greedy"):
        options: dict[str, object] = {"selection": selection, "drafts": 1}
        best = [best_so_far(kernel_evolve.make, options, n)[-1] for n in range(ESCAPE_RUNS)]
        counts[selection] = sum(value > BASIN for value in best)
    chance = fisher(counts["uct"], counts["greedy"], ESCAPE_RUNS)
    return Bar(
        f"synth: uct leaves the 12.37x basin more often than greedy, by {HORIZONS[-1]} evaluations",
        f"Fisher p < {MAX_CHANCE:g}",
        f"{counts['uct']} and {counts['greedy']} of {ESCAPE_RUNS}, p = {chance:.1e}",
        chance < MAX_CHANCE,
    )


def fisher(one: int, other: int, runs: int) -> float:
    """Return the chance of at least `one` successes of two equal groups (Fisher's exact test)."""
    total, ways = one + other, math.comb(2 * runs, one + other)
    more = range(one, min(total, runs) + 1)
    return sum(math.comb(runs, k) * math.comb(runs, total - k) for k in more) / ways


def _off(mean: float, error: float, wanted: float, wanted_error: float) -> float:
    return (mean - wanted) / math.hypot(error, wanted_error)


def _row(values: list[float] | tuple[float, ...]) -> str:
    return " ".join(f"{value:.2f}" for value in values)


def bars(only: str) -> list[Bar]:
    """Return the bars of the curves whose name, for example `polca_epsilon 0`, contains `only`."""
    found = {name: _bar(name) for name in CURVES if only in name.replace(", ", "_")}
    evolved = [bar.details["means"][-1] for name, bar in found.items() if "openevolve" in name]
    result = list(found.values())
    if evolved:
        # Blind moves leave evolution behind: nobody may read these curves as a success of it.
        best = max(evolved)
        name = f"synth: uniform random programs beat openevolve after {HORIZONS[-1]}"
        result.append(Bar(name, f"below {UNIFORM:.2f}", f"{best:.2f}", best < UNIFORM))
    if (wide := found.get("polca, epsilon .3")) is not None:
        most = wide.details["means"][-1]
        name = "synth: an epsilon wider than a move learns nothing"
        result.append(Bar(name, f"below {MAX_WIDE:g}", f"{most:.2f}", most < MAX_WIDE))
    if only in "escapes":
        result.append(escapes())
    return result
