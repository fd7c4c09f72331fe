"""Bars: search strategies on landscapes with a known optimum.

The bar runs tilewright's strategies turn by turn in memory. Their score is the speed-up; an
incorrect turn has none, so it is never the best and no prompt shows it. A search continues from the
last or the best correct program, and begins with the reference. The reference is not evaluated: the
first evaluation is that of the first reply.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Sequence

from benchmarks.bars import Bar
from benchmarks.search import originals_curves
from benchmarks.search.landscapes import Ladder, Landscape, Uniform, UnitMove, landscape
from tilewright.loop.driver import Strategy
from tilewright.loop.policies.base import Message
from tilewright.loop.strategies import best_of_n, greedy, sequential
from tilewright.loop.strategies.base import Factory, Plan
from tilewright.records.events import Ask, Reply, Turn
from tilewright.testing.synth import OPTIMUM, REFERENCE, Program, judge, time_of

SEED = 20_251_121
REPETITIONS = 400
WANTED_REPETITIONS = 2_000
"""Repetitions behind each wanted curve; standard errors are 0.04 to 0.07."""
MAX_STANDARD_ERRORS = 3.0
"""Most combined standard errors between a measured mean and the wanted one."""
PROGRESS_S = 5.0
HORIZONS = (20, 50, 100, 200, 500)
SECOND_PEAK = Program(64, 64, 32, 4, 2, 4, 7, 1)
CURVES: dict[str, tuple[Factory, dict[str, object], type[UnitMove] | type[Uniform]]] = {
    "uniform": (best_of_n.make, {}, Uniform),
    "greedy": (greedy.make, {}, UnitMove),
    "sequential": (sequential.make, {"context": "last_w", "w": 1}, UnitMove),
}
"""Each strategy with its options and the policy that answers."""
WANTED = {
    "uniform": (8.93, 10.74, 11.93, 13.09, 14.37),
    "greedy": (5.39, 10.57, 13.52, 14.06, 14.06),
    "sequential": (3.62, 6.23, 8.62, 10.77, 13.17),
}
"""Mean of the best speed-up after the numbers of evaluations in `HORIZONS`."""
LADDERS = ((3, 0.5), (5, 0.5), (5, 0.3), (10, 0.5))
CLIMBS = 4_000


def speedup_in(turn: Turn) -> float | None:
    """Return the score of a turn: its speed-up, `None` if it is not correct."""
    return turn.judgements[0].speedup


def best_so_far(strategy: Strategy, write: Callable[[Sequence[Message], Ask], str]) -> list[float]:
    """Run a strategy to its end; return its best speed-up at each horizon."""
    replies: dict[str, str] = {}
    best, curve = 0.0, []
    while asks := strategy.ask(1):
        ask = asks[0]
        shown = [Message(role="assistant", text=replies[name]) for name in ask.shown_turns]
        text = write(shown, ask)
        replies[ask.id] = text
        turn = Turn(ask=ask, reply=Reply(text=text), judgements=(judge(text),))
        strategy.tell(turn)
        best = max(best, speedup_in(turn) or 0.0)
        if len(replies) in HORIZONS:
            curve.append(best)
    return curve


def _curve(name: str) -> Bar:
    factory, options, proposer = CURVES[name]
    start = printed = time.monotonic()
    curves = []
    for sample in range(REPETITIONS):
        plan = Plan(problem="synth", sample=sample, turns=HORIZONS[-1], options=options)
        curves.append(best_so_far(factory(plan, speedup_in), proposer(SEED)))
        now = time.monotonic()
        if now - printed > PROGRESS_S:
            printed = now
            print(f"{name}: {sample + 1} of {REPETITIONS}, {now - start:.0f} s", flush=True)
    columns = list(zip(*curves, strict=True))
    means = [statistics.fmean(column) for column in columns]
    spreads = [statistics.stdev(column) for column in columns]
    # The wanted means come from the same distribution, so its spread is also theirs.
    share = (1 / REPETITIONS + 1 / WANTED_REPETITIONS) ** 0.5
    errors = [
        (mean - wanted) / (spread * share)
        for mean, wanted, spread in zip(means, WANTED[name], spreads, strict=True)
    ]
    print(f"{name}: off by {_row(errors)} combined standard errors", flush=True)
    return Bar(
        f"synth: best of {name} after {', '.join(map(str, HORIZONS))}",
        f"{_row(WANTED[name])} within {MAX_STANDARD_ERRORS:g} standard errors",
        _row(means),
        max(map(abs, errors)) <= MAX_STANDARD_ERRORS,
        {
            "means": means,
            "standard_errors": [spread / REPETITIONS**0.5 for spread in spreads],
            "combined_standard_errors_off": errors,
            "repetitions": REPETITIONS,
        },
    )


def _row(values: Sequence[float]) -> str:
    return " ".join(f"{value:.2f}" for value in values)


def _truth() -> list[Bar]:
    found = landscape()
    return [
        _same("programs", "58,860 valid, 36,864 do not build, 48,276 wrong", _counts(found)),
        _same(
            "times of the reference and the optimum",
            "19.784, 1.0320",
            f"{time_of(REFERENCE):.3f}, {time_of(OPTIMUM):.4f}",
        ),
        _same(
            "local optima",
            f"{tuple(OPTIMUM)} 19.171x, {tuple(SECOND_PEAK)} 12.373x",
            ", ".join(f"{tuple(program)} {speedup:.3f}x" for program, speedup in found.peaks),
        ),
        _same(
            "median, p90, p99 of the valid",
            "3.67x 8.33x 12.58x",
            f"{found.median:.2f}x {found.p90:.2f}x {found.p99:.2f}x",
        ),
    ]


def _counts(found: Landscape) -> str:
    return f"{found.valid:,} valid, {found.build_failures:,} do not build, {found.wrong:,} wrong"


def _same(name: str, wanted: str, seen: str) -> Bar:
    return Bar(f"synth: {name}", wanted, seen, wanted == seen)


def _ladder(*, keeps_best: bool) -> Bar:
    sample = random.Random(SEED)
    wanted, seen, errors = [], [], []
    for steps, chance in LADDERS:
        ladder = Ladder(steps, chance)
        tries = [ladder.climb(sample, keeps_best=keeps_best) for _ in range(CLIMBS)]
        wanted.append(ladder.best_keeping_mean() if keeps_best else ladder.sequential_mean())
        seen.append(statistics.fmean(tries))
        errors.append((seen[-1] - wanted[-1]) / (statistics.stdev(tries) / CLIMBS**0.5))
    return Bar(
        f"synth: ladder, {'keeps the best' if keeps_best else 'sequential'}, tries",
        f"{_row(wanted)} within {MAX_STANDARD_ERRORS:g} standard errors",
        _row(seen),
        max(map(abs, errors)) <= MAX_STANDARD_ERRORS,
        {"ladders": LADDERS, "standard_errors_off": errors, "climbs": CLIMBS},
    )


def run(only: str = "") -> list[Bar]:
    """Run the parts whose name contains `only`.

    They are truth, ladder, uniform, greedy, sequential, and the curves of `originals_curves`.
    """
    bars: list[Bar] = []
    if only in "truth":
        bars += _truth()
    if only in "ladder":
        bars += [_ladder(keeps_best=False), _ladder(keeps_best=True)]
    bars += [_curve(name) for name in CURVES if only in name]
    return bars + originals_curves.bars(only)
