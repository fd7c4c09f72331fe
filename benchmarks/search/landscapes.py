"""Landscapes with known solutions: all programs of SynthKernel-1, and the ladder.

The ladder is a chain of steps with a closed form for two searches.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from tilewright.loop.policies.base import Message
from tilewright.records.events import Ask
from tilewright.scoring.bootstrap import median, quantile
from tilewright.testing.synth import (
    LEVELS,
    REFERENCE,
    REFERENCE_TIME,
    Program,
    build_failure,
    parse,
    render,
    time_of,
    wrong_result,
)

FUSED = (1, 2, 4)
"""The bits of `fuse`: each fuses one operation into the kernel."""


def programs() -> Iterator[Program]:
    """Yield all 144,000."""
    return (Program(*levels) for levels in product(*LEVELS.values()))


def speedup_of(program: Program) -> float | None:
    """Return how many times faster than the reference it is; `None` unless it is correct."""
    if build_failure(program) or wrong_result(program):
        return None
    return REFERENCE_TIME / time_of(program)


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
        start = REFERENCE if isinstance(shown, str) else shown
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
