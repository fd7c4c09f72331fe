"""One edit a call against several edits in one call, for a coder that errs. No torch.

MTMC (QiMeng-Kernel, arXiv 2511.20100, ablation of the hierarchy) has its coder make one edit at a
time. If an edit is exact with probability p, k edits in one call are with p^k. Single edits are
repeated until each is exact, so the expected numbers of calls are k / p and p^-k.
"""

from __future__ import annotations

import random
import statistics
from dataclasses import dataclass

from tilewright.loop.random_values import chooser


@dataclass(frozen=True)
class CallCounts:
    """Numbers of calls of the coder until some edits are made."""

    expected: float
    mean: float
    """Of the played runs."""
    error: float
    """Standard error of that mean."""


def expected_calls(edits: int, success: float, *, at_once: bool) -> float:
    """Return the expected calls until so many edits are made: k / p, or p^-k at once."""
    return success**-edits if at_once else edits / success


def played_calls(edits: int, success: float, *, at_once: bool, draw: random.Random) -> int:
    """Return the calls of one run, in which each edit of a call is exact or not by itself."""
    calls = done = 0
    while done < edits:
        calls += 1
        exact = [draw.random() < success for _ in range(edits if at_once else 1)]
        done += len(exact) if all(exact) else 0
    return calls


def call_counts(edits: int, success: float, *, at_once: bool, runs: int, seed: int) -> CallCounts:
    """Return expected and played calls; the errors are named random numbers."""
    name = "at once" if at_once else "single"
    draws = (chooser(seed, "hierarchy", name, edits, number) for number in range(runs))
    made = [played_calls(edits, success, at_once=at_once, draw=draw) for draw in draws]
    error = statistics.stdev(made) / len(made) ** 0.5
    expected = expected_calls(edits, success, at_once=at_once)
    return CallCounts(expected, statistics.fmean(made), error)
