"""The memory of POLCA: a heap of copies of programs, from which an iteration takes the next ones.

POLCA (arXiv 2603.14769) explores the programs with the highest priority, gives each one more trial,
and returns them to the heap with new ones. `FaithfulHeap` keeps the rules of its code (OpenTrace,
branch `experimental`, commit acb9719, `opto/trainer/algorithms/polca.py`), also those that the
paper does not state. `CorrectedHeap` has one entry for each program and no stale priority.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

Priority = Literal["mean", "ucb", "oldest", "newest"]
PAIRWISE_BLOCK = 128
"""Most numbers of one block of `mean`."""


@dataclass(eq=False, slots=True)
class Copy:
    """A program with the trials that this copy of it has seen."""

    program: str
    """Digest of its code."""
    writer: str
    """The request that wrote it."""
    number: int
    """Place in the order in which programs were written; copies keep it."""
    embedding: tuple[float, ...] = ()
    scores: list[float] = field(default_factory=list)
    trials: list[str] = field(default_factory=list)
    """Requests that measured it, in the order of `scores`."""

    def copied(self) -> Copy:
        """Return a copy with the trials so far; later trials of one do not reach the other."""
        scores, trials = list(self.scores), list(self.trials)
        return Copy(self.program, self.writer, self.number, self.embedding, scores, trials)


@dataclass(frozen=True)
class MemoryRules:
    """How programs are ranked and how many are kept."""

    priority: Priority = "mean"
    kappa: float = 1.0
    """Factor of the exploration term of `ucb`."""
    low: float = 0.0
    high: float = 1.0
    """Range of scores: `ucb` is clipped to it, and programs without a trial rank at its top."""
    size: int | None = None
    """Most entries of the memory; `None`: all."""
    merge_every: int = 0
    """Iterations between two merges of the short-term memory; 0: there is no short-term memory."""
    short_size: int | None = None
    """Most entries of the short-term memory."""


def mean(values: Sequence[float]) -> float:
    """Return the mean, summed in the order in which numpy sums, as the original does.

    The result depends on no version of Python, in contrast to that of `sum`.
    """
    return _pairwise_sum(values) / len(values)


def _pairwise_sum(values: Sequence[float]) -> float:
    count = len(values)
    if count < 8:
        total = 0.0
        for value in values:
            total += value
        return total
    if count > PAIRWISE_BLOCK:
        half = count // 2
        half -= half % 8
        return _pairwise_sum(values[:half]) + _pairwise_sum(values[half:])
    lanes = list(values[:8])
    whole = count - count % 8
    for start in range(8, whole, 8):
        for lane in range(8):
            lanes[lane] += values[start + lane]
    total = ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + (
        (lanes[4] + lanes[5]) + (lanes[6] + lanes[7])
    )
    for value in values[whole:]:
        total += value
    return total


def ucb(scores: Sequence[float], iterations: int, kappa: float, low: float, high: float) -> float:
    """Return the upper confidence bound of a program, clipped to the range of scores.

    `mean + kappa sqrt(ln(T + 1) / n) (high - low)` with T = iterations + 1 and n trials (UCB1, Auer
    et al. 2002; POLCA, arXiv 2603.14769, with the horizon of its code). Without a trial: `high`.
    """
    if not scores:
        return high
    width = kappa * math.sqrt(math.log(iterations + 2) / len(scores)) * (high - low)
    return min(max(mean(scores) + width, low), high)


def priority_of(copy: Copy, rules: MemoryRules, iterations: int) -> float:
    """Return the number by which a program is taken; the highest comes first."""
    if rules.priority == "oldest":
        return -float(copy.number)
    if rules.priority == "newest":
        return float(copy.number)
    if rules.priority == "ucb":
        return ucb(copy.scores, iterations, rules.kappa, rules.low, rules.high)
    return mean(copy.scores) if copy.scores else rules.high


def with_best_mean(copies: Sequence[Copy]) -> Copy | None:
    """Return the copy with the highest mean of its trials; of equal ones the first."""
    return max(copies, key=_standing, default=None)


def _standing(copy: Copy) -> float:
    return mean(copy.scores) if copy.scores else -math.inf


@dataclass(order=True, frozen=True, slots=True)
class Entry:
    """A place in the heap: the highest priority first, then the program that is newer."""

    minus_priority: float
    minus_number: int
    copy: Copy = field(compare=False)


class CandidateHeap(Protocol):
    """Programs between two iterations. Lifetime of its classes: one run; replay rebuilds them."""

    def begin(self, copies: Sequence[Copy]) -> None:
        """Take in the first programs, which have no trial."""

    def end_trials(self) -> None:
        """Count an iteration, after its explored programs got their trials."""

    def members(self) -> list[Copy]:
        """Return the programs that new ones are compared with, but for the explored ones."""

    def store(self, copies: Sequence[Copy]) -> None:
        """Take in explored and new programs; one without a trial is left out."""

    def choose(self, count: int, *, use_best: bool) -> list[Copy]:
        """Return at most `count` programs to explore, and take them out of the memory."""


class FaithfulHeap:
    """The memory with all rules of the original's code.

    A priority is computed when a copy is stored, and stays. The best program is explored but not
    taken out, so that a program may be there twice with other trials. A memory that is full drops
    the last place of the heap's array, whichever program it holds. With a short-term memory, copies
    are made only on the way into the long-term one.
    """

    def __init__(self, rules: MemoryRules) -> None:
        self._rules = rules
        self._long: list[Entry] = []
        self._short: list[Entry] = []
        self._iterations = 0

    @property
    def array(self) -> list[Entry]:
        """Return the heap that is in use, as its array."""
        return self._short if self._uses_short() else self._long

    def _uses_short(self) -> bool:
        every = self._rules.merge_every
        # The iteration before the first one has no merge behind it.
        return every > 0 and (self._iterations % every != 0 or self._iterations == 0)

    def begin(self, copies: Sequence[Copy]) -> None:
        """Take in the first programs at the top of the range of scores."""
        for copy in copies:
            heapq.heappush(self.array, Entry(-self._rules.high, -copy.number, copy))

    def end_trials(self) -> None:
        """Count an iteration; merge the short-term memory into the long-term one if it is time."""
        self._iterations += 1
        if self._rules.merge_every and not self._uses_short():
            for entry in self._short:
                kept = Entry(entry.minus_priority, entry.minus_number, entry.copy.copied())
                heapq.heappush(self._long, kept)
            self._short = []

    def members(self) -> list[Copy]:
        """Return the programs of the heap that is in use."""
        return [entry.copy for entry in self.array]

    def store(self, copies: Sequence[Copy]) -> None:
        """Push programs with their present priority."""
        short = self._uses_short()
        size = self._rules.short_size if short else self._rules.size
        for copy in copies:
            if not copy.scores:
                continue
            kept = copy if short else copy.copied()
            priority = priority_of(copy, self._rules, self._iterations)
            array = self.array
            heapq.heappush(array, Entry(-priority, -copy.number, kept))
            if size is not None:
                del array[size:]

    def choose(self, count: int, *, use_best: bool) -> list[Copy]:
        """Return the best program, which stays, and those with the highest priorities."""
        array = self.array
        best = with_best_mean([entry.copy for entry in array]) if use_best else None
        chosen = [best] if best is not None else []
        while len(chosen) < count and array:
            copy = heapq.heappop(array).copy
            if copy is not best:
                chosen.append(copy)
        return chosen


class CorrectedHeap:
    """One entry for each program with all its trials, ranked by priorities of the moment."""

    def __init__(self, rules: MemoryRules) -> None:
        self._rules = rules
        self._kept: dict[str, Copy] = {}
        self._iterations = 0

    def begin(self, copies: Sequence[Copy]) -> None:
        """Take in the first programs, each once."""
        for copy in copies:
            self._kept.setdefault(copy.program, copy)

    def end_trials(self) -> None:
        """Count an iteration."""
        self._iterations += 1

    def members(self) -> list[Copy]:
        """Return all programs."""
        return list(self._kept.values())

    def store(self, copies: Sequence[Copy]) -> None:
        """Take in programs; trials of a known one are added to those that it has."""
        for copy in copies:
            known = self._kept.setdefault(copy.program, copy)
            if known is not copy:
                known.scores += copy.scores
                known.trials += copy.trials
        if self._rules.size is not None:
            kept = self._ranked()[: self._rules.size]
            self._kept = {copy.program: copy for copy in kept}

    def _ranked(self) -> list[Copy]:
        judged = [copy for copy in self._kept.values() if copy.scores or not self._iterations]
        return sorted(
            judged,
            key=lambda copy: (-priority_of(copy, self._rules, self._iterations), -copy.number),
        )

    def choose(self, count: int, *, use_best: bool) -> list[Copy]:
        """Take out the best program and those with the highest priorities."""
        ranked = self._ranked()
        best = with_best_mean(ranked) if use_best else None
        if best is not None:
            ranked = [best, *(copy for copy in ranked if copy is not best)]
        chosen = ranked[:count]
        for copy in chosen:
            del self._kept[copy.program]
        return chosen
