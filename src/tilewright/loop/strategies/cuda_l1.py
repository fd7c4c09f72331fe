"""CUDA-L1: each prompt shows scored programs of different speed, and asks why they differ.

This is the search loop of CUDA-L1 (arXiv 2507.14111), without its training. Every correct program
enters the archive with the median of its trials. The next prompt shows some of them, slowest first.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable
from typing import Literal

from pydantic import Field

from tilewright.errors import ConfigError
from tilewright.loop.archives.buckets import Buckets, best, contrasting, uniform
from tilewright.loop.driver import Strategy
from tilewright.loop.estimates import Estimate, Estimates
from tilewright.loop.random_values import chooser
from tilewright.loop.strategies.base import ArchiveCell, Options, Plan, Score, next_ask
from tilewright.records.events import Ask, Turn


class CudaL1Options(Options):
    """The choice of the exemplars."""

    n_exemplars: int = Field(default=2, ge=1)
    """Programs that a prompt shows; the paper shows two."""
    tau: float | None = Field(default=None, gt=0)
    """Temperature of the draw of buckets, in units of the speed-up. The paper gives no value;
    `None` takes the standard deviation of the bucket means, at least 0.1."""
    delta: float = Field(default=0.1, gt=0)
    """Width of a bucket in log2 of the speed-up. The paper gives no value; 0.1 is 7 %, above the
    noise of a measurement."""
    selection: Literal["buckets", "random", "best"] = "buckets"
    """`random` draws programs whatever their speed, and `best` takes the fastest: both are there to
    measure what contrast is worth."""


SELECTIONS: dict[str, Callable[[Buckets, CudaL1Options, random.Random], tuple[str, ...]]] = {
    "buckets": lambda kept, chosen, draw: contrasting(kept, chosen.n_exemplars, chosen.tau, draw),
    "random": lambda kept, chosen, draw: uniform(kept, chosen.n_exemplars, draw),
    "best": lambda kept, chosen, draw: best(kept, chosen.n_exemplars),  # noqa: ARG005 - one signature
}


class CudaL1:
    """Issues requests at any time, from the programs that are known by then. Lifetime: one run."""

    def __init__(self, plan: Plan, options: CudaL1Options) -> None:
        self._plan, self._options = plan, options
        self._next = 0
        self._kept = Buckets(options.delta)
        self._estimates = Estimates()
        self._writers: dict[str, str] = {}
        """Digest of a program: the first request that wrote it."""

    def ask(self, limit: int) -> list[Ask]:
        """Return requests, each with exemplars of its own draw."""
        asks: list[Ask] = []
        while len(asks) < limit and self._next < self._plan.turns:
            asks.append(self._request(self._next))
            self._next += 1
        return asks

    def _request(self, number: int) -> Ask:
        name = next_ask(self._plan, number).id
        draw = chooser(self._plan.seed, name, "exemplars")
        taken = SELECTIONS[self._options.selection](self._kept, self._options, draw)
        shown = self._kept.worst_first(taken)
        # The program to improve on is the fastest of them.
        return next_ask(
            self._plan, number, shown, shown[::-1], form="exemplars", operator="contrast"
        )

    def tell(self, turn: Turn) -> None:
        """Admit a correct program, or score it anew; remove one that a further trial refutes."""
        if not turn.source or not turn.judgements:
            return
        self._estimates.add(turn)
        estimate = self._estimates.of(turn.ask.id)
        if estimate.verdict is None:
            return
        writer = self._writers.setdefault(turn.source, _writer(turn))
        score = median_speedup(estimate)
        if score is None:
            self._kept.drop(writer)
        else:
            self._kept.put(writer, score)

    def cells(self) -> list[ArchiveCell]:
        """Return the members of the buckets, the fastest bucket first."""
        delta, found = self._options.delta, []
        for bucket in reversed(self._kept.buckets()):
            low, high = 2 ** (bucket.place * delta), 2 ** ((bucket.place + 1) * delta)
            place = f"{low:.3g}x to {high:.3g}x"
            found += [ArchiveCell(self._plan.sample, place, name) for name in bucket.members]
        return found


def median_speedup(estimate: Estimate) -> float | None:
    """Return the median speed-up of a candidate's trials; `None` unless correct and timed."""
    if estimate.verdict != "correct":
        return None
    values = [item.log_speedup for item in estimate.trials if item.log_speedup is not None]
    return math.exp(statistics.median(values)) if values else None


def _writer(turn: Turn) -> str:
    return turn.ask.parents[0] if turn.ask.role == "measure" else turn.ask.id


def make(plan: Plan, score: Score) -> Strategy:  # noqa: ARG001 - one signature
    """Return a new strategy; options: `n_exemplars`, `tau`, `delta`, `selection`."""
    options = CudaL1Options.read("cuda_l1", plan.options)
    if options.n_exemplars > plan.turns:
        raise ConfigError(
            f"strategy cuda_l1, option 'n_exemplars': {options.n_exemplars} programs need at least "
            f"{options.n_exemplars} requests, and there are {plan.turns}"
        )
    return CudaL1(plan, options)
