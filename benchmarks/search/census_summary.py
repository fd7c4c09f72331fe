"""Print what a census says about its space: verdicts, intervals, spread, best and local optima.

python -m benchmarks.search.census_summary docs/measurements/census/cpp_matmul.jsonl.gz

A local optimum is a correct program that is faster than all programs one move away. Its barrier is
the least loss on any path of moves over correct programs to a faster program. Measurement errors
make small barriers, so each has its number of standard errors.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tilewright.records.census import Census, CensusRow, read_census, source_digest
from tilewright.spaces import SPACES
from tilewright.spaces.space import Space, moves, source

NORMAL_95 = 1.96
SHOWN = 8
"""Fastest programs, and local optima, that are printed."""
NEAR = 0.95
"""Share of the best speed-up from which a program counts as near the best."""


@dataclass(frozen=True)
class Level:
    """The speed-up of a program over its trials, on the logarithmic scale."""

    mean: float
    error: float
    """Standard error."""


@dataclass(frozen=True)
class Optimum:
    """A local optimum, and the path to a faster one."""

    program: str
    barrier: float | None
    """Least loss on a path to a faster program, on the logarithmic scale; `None`: the best one."""
    standard_errors: float = 0.0
    """The barrier in standard errors of the two measurements."""


def level_of(rows: Sequence[CensusRow]) -> Level | None:
    """Return the level of a program; `None` unless all its trials were correct and timed."""
    logs = [math.log(row.speedup) for row in rows if row.speedup is not None]
    if len(logs) < len(rows) or not logs:
        return None
    errors = [math.log(row.high / row.low) / 2 / NORMAL_95 for row in rows if row.low and row.high]
    stated = math.hypot(*errors) / len(rows)
    scatter = statistics.stdev(logs) / math.sqrt(len(logs)) if len(logs) > 1 else 0.0
    return Level(statistics.fmean(logs), max(stated, scatter))


def levels_of(census: Census) -> dict[str, Level]:
    """Return the levels of the correct programs."""
    found = {program: level_of(rows) for program, rows in census.rows.items()}
    return {program: level for program, level in found.items() if level is not None}


def optima(space: Space, levels: Mapping[str, Level]) -> list[Optimum]:
    """Return the local optima, the best one first, then by their barrier.

    Programs are added from the fastest to the slowest. One that connects two sets of programs ends
    the set whose best program is the slower one.
    """
    best_of: dict[str, str] = {}

    def top(program: str) -> str:
        while best_of[program] != program:
            program = best_of[program]
        return program

    found = []
    for program in sorted(levels, key=lambda name: -levels[name].mean):
        knobs = space.by_digest[program]
        near = (source_digest(source(space, item)) for item in moves(space, knobs))
        tops = {top(name) for name in near if name in best_of}
        best_of[program] = max(tops, key=lambda name: levels[name].mean, default=program)
        for ended in sorted(tops - {best_of[program]}):
            best_of[ended] = best_of[program]
            one, other = levels[ended], levels[program]
            loss = one.mean - other.mean
            error = math.hypot(one.error, other.error)
            found.append(Optimum(ended, loss, loss / error if error else math.inf))
    whole = {top(name) for name in best_of}
    found.sort(key=lambda item: -(item.barrier or 0.0))
    return [*(Optimum(name, None) for name in sorted(whole)), *found]


def text_of(space: Space, program: str) -> str:
    """Return the values of the knobs that differ from the start of the space."""
    knobs = space.by_digest[program]
    return ", ".join(f"{k} {v}" for k, v in knobs.items() if v != space.start[k]) or "the start"


def report(census: Census) -> str:
    """Return the lines to print."""
    space = SPACES[census.header.space]
    levels = levels_of(census)
    ranked = sorted(levels, key=lambda name: -levels[name].mean)
    verdicts = Counter(rows[0].outcome.verdict for rows in census.rows.values())
    header = census.header
    lines = [
        f"{space.name} on {header.environment.device_name}, {header.date}",
        f"{len(census.rows)} of {header.programs} programs: "
        + ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items())),
        *_intervals(census),
    ]
    if not ranked:
        return "\n".join([*lines, "no program is correct"])
    best, worst = levels[ranked[0]].mean, levels[ranked[-1]].mean
    near = sum(level.mean >= best + math.log(NEAR) for level in levels.values())
    start = levels.get(source_digest(source(space, space.start)))
    lines += [
        f"spread {math.exp(best - worst):.1f}; {near} programs within 5 % of the best; start "
        + (f"{math.exp(start.mean):.3f}x" if start else "not correct"),
        "fastest:",
        *(f"  {_speed(levels[name])} {text_of(space, name)}" for name in ranked[:SHOWN]),
        "local optima:",
    ]
    for item in optima(space, levels)[:SHOWN]:
        text = f"  {_speed(levels[item.program])} {text_of(space, item.program)}"
        if item.barrier is not None:
            loss = 1 - math.exp(-item.barrier)
            text += f"; barrier {loss:.1%}, {item.standard_errors:.1f} standard errors"
        lines.append(text)
    return "\n".join(lines)


def _intervals(census: Census) -> list[str]:
    rows = [row for own in census.rows.values() for row in own]
    widths = sorted(math.log(row.high / row.low) / 2 for row in rows if row.low and row.high)
    groups = [[row.speedup for row in own] for own in census.rows.values() if len(own) > 1]
    logs = [[math.log(speed) for speed in own if speed is not None] for own in groups]
    scatter = [statistics.stdev(own) for own in logs if len(own) > 1]
    lines = [f"{len(rows)} trials, {statistics.fmean(row.seconds for row in rows):.2f} s each"]
    if widths:
        median, high = widths[len(widths) // 2], widths[int(0.9 * len(widths))]
        lines.append(
            f"half-width of a 95 % interval: median {median:.1%}, 90th percentile {high:.1%}"
        )
    if scatter:
        lines.append(f"standard deviation between trials of a program: {_rms(scatter):.1%}")
    return lines


def _rms(values: Sequence[float]) -> float:
    return math.sqrt(statistics.fmean(value * value for value in values))


def _speed(level: Level) -> str:
    half = NORMAL_95 * level.error
    low, high = math.exp(level.mean - half), math.exp(level.mean + half)
    return f"{math.exp(level.mean):.3f}x [{low:.3f}, {high:.3f}]"


if __name__ == "__main__":
    print(report(read_census(Path(sys.argv[1]))))
