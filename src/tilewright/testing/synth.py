"""Synthetic search problems with known solutions: SynthKernel-1 and the ladder.

SynthKernel-1: a program is text whose header sets eight fields. Some programs do not build, some
compute a wrong result, and the rest have a time. There are 144,000 programs, so an exhaustive
search finds the optimum. The ladder is a chain of steps with a closed form for two searches.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from tilewright.loop.policies.base import Message
from tilewright.records.events import Ask, EvalSummary
from tilewright.scoring.bootstrap import median, quantile

__all__ = [
    "ENTRY",
    "LEVELS",
    "OPTIMUM",
    "REFERENCE",
    "Ladder",
    "Landscape",
    "Program",
    "Uniform",
    "UnitMove",
    "Unreadable",
    "build_failure",
    "judge",
    "landscape",
    "moves",
    "parse",
    "programs",
    "render",
    "speedup_of",
    "time_of",
    "wrong_result",
]

ENTRY = "kernel"
"""The function that every program defines; the parser of replies finds it by this name."""
LEVELS: dict[str, tuple[int, ...]] = {
    "tile_m": (16, 32, 64, 128, 256),
    "tile_n": (16, 32, 64, 128, 256),
    "tile_k": (16, 32, 64),
    "stages": (1, 2, 3, 4, 5),
    "warps": (1, 2, 4, 8),
    "vec": (1, 2, 4, 8),
    "fuse": (0, 1, 2, 3, 4, 5, 6, 7),
    "order": (0, 1, 2),
}
"""The values that each field may have."""
FUSED = (1, 2, 4)
"""The bits of `fuse`: each fuses one operation into the kernel."""
SHARED_BYTES = 101_376
"""Most bytes of the tiles of all stages, at two bytes an element."""
ACCUMULATORS = 255
"""Most accumulators of a thread."""
ORDER = (1.0, 0.9, 1.15)
SMALL_TILE_ORDER = 1.25
"""Factor of order 1 below a tile_m of 64, where this order is slower than order 0."""

_HEADER = re.compile(r"^# ?(\w+):([^\r\n]*)", re.MULTILINE)
_BY_TEXT = {name: {str(level): level for level in levels} for name, levels in LEVELS.items()}
_BODY = f"def {ENTRY}(*inputs):\n    return inputs\n"


class Program(NamedTuple):
    """The fields in the header of a program."""

    tile_m: int
    tile_n: int
    tile_k: int
    stages: int
    warps: int
    vec: int
    fuse: int
    """A bit mask: 1, 2 and 4."""
    order: int


REFERENCE = Program(16, 16, 16, 1, 1, 1, 0, 0)
"""Takes 19.784, which is a speed-up of 1."""
OPTIMUM = Program(128, 128, 32, 4, 8, 4, 7, 1)
"""Takes 1.0320: nothing is faster than 19.171x."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A text that is no program, and why."""

    reason: str


def programs() -> Iterator[Program]:
    """Yield all 144,000."""
    return (Program(*levels) for levels in product(*LEVELS.values()))


def render(program: Program) -> str:
    """Return a program as the reply of a model: one fenced block of Python, the header first."""
    header = "".join(f"# {name}: {value}\n" for name, value in program._asdict().items())
    return f"```python\n{header}{_BODY}```\n"


def parse(text: str) -> Program | Unreadable:
    """Read the header lines `# field: value` of a reply, or of a file from it.

    Each field must occur once, with one of its values; other lines are ignored.
    """
    found: dict[str, int] = {}
    for name, rest in _HEADER.findall(text):
        if name not in LEVELS:
            continue
        if name in found:
            return Unreadable(f"{name} is given twice")
        value = rest.strip()
        level = _BY_TEXT[name].get(value)
        if level is None:
            levels = ", ".join(_BY_TEXT[name])
            return Unreadable(f"{name} is {value[:40]!a}; known: {levels}")
        found[name] = level
    missing = [name for name in LEVELS if name not in found]
    if missing:
        return Unreadable(f"the header lacks {', '.join(missing)}")
    return Program(**found)


def build_failure(program: Program) -> str:
    """Return why a program does not build; empty where it does."""
    m, n, k, stages, warps = program[:5]
    needed = (m + n) * k * 2 * stages
    if needed > SHARED_BYTES:
        return f"its tiles take {needed:,} bytes; there are {SHARED_BYTES:,}"
    held = m * n / (32 * warps)
    if held > ACCUMULATORS:
        return f"a thread holds {held:.0f} accumulators; it may hold {ACCUMULATORS}"
    return ""


def wrong_result(program: Program) -> str:
    """Return why the result of a program that builds is wrong; empty where it is right."""
    if program.fuse & 4 and not program.fuse & 2:
        return f"fuse {program.fuse} has bit 4 without bit 2"
    if program.vec > program.tile_k // 8:
        return f"vec {program.vec} is more than an eighth of tile_k {program.tile_k}"
    return ""


def time_of(program: Program) -> float:
    """Return the time of a program; it has no unit, and no noise."""
    m, n, k, stages, warps, vec, fuse, order = program
    memory = (64 / m + 64 / n) * (1 + 0.15 * abs(math.log2(vec) - 2))
    pipe = 1 + 0.8 / stages + 0.06 * max(0, stages - 3)
    occupancy = 1 + 0.25 * abs(math.log2(m * n / (64 * 32 * warps)))
    depth = 1 + 0.1 * abs(math.log2(k / 32))
    factor = SMALL_TILE_ORDER if order == 1 and m < 64 else ORDER[order]
    work = (0.5 + memory * factor) * pipe * occupancy * depth * 0.5
    return work + 0.9 - 0.25 * fuse.bit_count()


_REFERENCE_TIME = time_of(REFERENCE)


def speedup_of(program: Program) -> float | None:
    """Return how many times faster than the reference it is; `None` unless it is correct."""
    if build_failure(program) or wrong_result(program):
        return None
    return _REFERENCE_TIME / time_of(program)


def judge(text: str) -> EvalSummary:
    """Judge a reply. Exact: the interval of the speed-up is a point."""
    program = parse(text)
    if isinstance(program, Unreadable):
        reason = f"unparseable: {program.reason}"
        return EvalSummary(protocol="strict", verdict="failed", reason=reason)
    if reason := build_failure(program):
        return EvalSummary(protocol="strict", verdict="failed", reason=f"build: {reason}")
    if reason := wrong_result(program):
        return EvalSummary(protocol="strict", verdict="incorrect", reason=reason)
    speedup = _REFERENCE_TIME / time_of(program)
    return EvalSummary(
        protocol="strict", verdict="correct", speedup=speedup, low=speedup, high=speedup
    )


def moves(program: Program) -> tuple[Program, ...]:
    """Return the legal unit moves: a field one notch down or up its values, or one bit of `fuse`.

    Where a field is at the end of its values there is one move fewer. A move that does not build,
    or is wrong, is legal.
    """
    found = []
    for place, (name, levels) in enumerate(LEVELS.items()):
        value = program[place]
        if name == "fuse":
            others = [value ^ bit for bit in FUSED]
        else:
            notch = levels.index(value)
            others = [*levels[max(notch - 1, 0) : notch], *levels[notch + 1 : notch + 2]]
        found += [program._replace(**{name: other}) for other in others]
    return tuple(found)


@dataclass(frozen=True, slots=True)
class UnitMove:
    """Replies with a random unit move of the last program in the prompt, all equally likely.

    Without a program in the prompt it starts from the reference. Equal requests and prompts get
    equal replies. An instance is a script of the policy `Scripted`.
    """

    seed: int

    def __call__(self, messages: Sequence[Message], ask: Ask) -> str:
        """Return a reply."""
        replies = (item.text for item in reversed(messages) if item.role == "assistant")
        shown = parse(next(replies, ""))
        start = REFERENCE if isinstance(shown, Unreadable) else shown
        return render(_drawn_for(self.seed, ask).choice(moves(start)))


@dataclass(frozen=True, slots=True)
class Uniform:
    """Replies with a random program, all 144,000 equally likely, whatever the prompt shows."""

    seed: int

    def __call__(self, messages: Sequence[Message], ask: Ask) -> str:  # noqa: ARG002 - one signature
        """Return a reply."""
        draw = _drawn_for(self.seed, ask)
        return render(Program(*(draw.choice(levels) for levels in LEVELS.values())))


def _drawn_for(seed: int, ask: Ask) -> random.Random:
    # A seed for each request: requests come in any order, and a resumed run has only the rest.
    return random.Random(f"{seed}/{ask.id}")


@dataclass(frozen=True, slots=True)
class Landscape:
    """The result of an exhaustive search."""

    valid: int
    build_failures: int
    wrong: int
    """Of those that build."""
    median: float
    p90: float
    p99: float
    """Speed-ups of the valid ones."""
    peaks: tuple[tuple[Program, float], ...]
    """The valid programs that no unit move makes faster, with their speed-ups; fastest first."""


def landscape() -> Landscape:
    """Evaluate every program; this takes seconds."""
    fast: dict[Program, float] = {}
    unbuilt = wrong = 0
    for program in programs():
        speedup = speedup_of(program)
        if speedup is not None:
            fast[program] = speedup
        elif build_failure(program):
            unbuilt += 1
        else:
            wrong += 1
    peaks = [
        (program, speedup)
        for program, speedup in fast.items()
        if all(fast.get(near, 0.0) <= speedup for near in moves(program))
    ]
    return Landscape(
        valid=len(fast),
        build_failures=unbuilt,
        wrong=wrong,
        median=median(fast.values()),
        p90=quantile(fast.values(), 0.9),
        p99=quantile(fast.values(), 0.99),
        peaks=tuple(sorted(peaks, key=lambda peak: -peak[1])),
    )


@dataclass(frozen=True, slots=True)
class Ladder:
    """A chain of steps, each of which succeeds with the same probability.

    Raises:
        ValueError: there is no step, or the chance is not between 0 and 1.
    """

    steps: int
    chance: float

    def __post_init__(self) -> None:
        if self.steps < 1 or not 0.0 < self.chance < 1.0:
            raise ValueError(f"a ladder of {self.steps} steps with chance {self.chance}")

    def sequential_mean(self) -> float:
        """Return the mean number of attempts if a failure leads back to the first step.

        It is that of `steps` successes in a row: (chance^-steps - 1) / (1 - chance).
        """
        return (self.chance**-self.steps - 1) / (1 - self.chance)

    def best_keeping_mean(self) -> float:
        """Return the mean number of attempts if a failure loses no step: steps / chance."""
        return self.steps / self.chance

    def climb(self, draw: random.Random, *, keeps_best: bool) -> int:
        """Simulate one climb; return the number of attempts."""
        tries = height = 0
        while height < self.steps:
            tries += 1
            if draw.random() < self.chance:
                height += 1
            elif not keeps_best:
                height = 0
        return tries
