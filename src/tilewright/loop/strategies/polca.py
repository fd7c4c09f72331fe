"""POLCA: measure the best programs again and again, and judge only proposals that are new.

POLCA (arXiv 2603.14769; code: OpenTrace, branch `experimental`, MIT) keeps programs in a heap. In
each iteration it measures some of them once more, asks for new programs from each, and drops those
that are near to known ones. The remaining ones are measured and join the heap.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Literal

from pydantic import Field

from tilewright.errors import ConfigError
from tilewright.loop.archives.epsilon_net import Epsilon, admitted
from tilewright.loop.archives.heap import (
    CandidateHeap,
    Copy,
    CorrectedHeap,
    FaithfulHeap,
    MemoryRules,
)
from tilewright.loop.candidate_text import code_of
from tilewright.loop.driver import Strategy
from tilewright.loop.embeddings import embed
from tilewright.loop.strategies.base import Options, Plan, Score
from tilewright.loop.strategies.phases import Batch, Phases, Search
from tilewright.loop.strategies.summariser import Summariser
from tilewright.records.events import Turn


class PolcaOptions(Options):
    """The memory, the net and the proposals; defaults of the published runs on kernels."""

    candidates: int = Field(default=5, ge=1)
    """Programs that an iteration explores."""
    proposals: int = Field(default=1, ge=1)
    """New programs from each of them."""
    epsilon: float | Literal["calibrate"] = 0.02
    """Distance to known programs above which a proposal is judged; 0 judges all. The published
    value belongs to the vectors of a model. `calibrate` takes a quantile of first distances."""
    calibration: int = Field(default=20, ge=2)
    """Different proposals that `calibrate` compares. Nothing is published; 20 have 190 pairs."""
    quantile: float = Field(default=0.05, ge=0, le=1)
    """Share of those pairs that count as near. Nothing is published."""
    use_best: bool = True
    """Whether the program with the best mean is always explored."""
    priority: Literal["mean", "ucb", "oldest", "newest"] = "mean"
    kappa: float = Field(default=1.0, ge=0)
    """Factor of the exploration term of `ucb`."""
    score_max: float = Field(default=20.0, gt=0)
    """Top of the range of scores, which `ucb` needs. Speed-ups have no top: this one is ours."""
    memory: int | None = Field(default=None, ge=1)
    """Most entries of the memory."""
    merge_every: int = Field(default=0, ge=0)
    """Iterations between two merges of a short-term memory; 0: there is none."""
    short_memory: int | None = Field(default=None, ge=1)
    """Most entries of the short-term memory."""
    validate_explored: bool = False
    """Whether explored programs are measured once more after the new ones."""
    summary: bool = True
    """Whether a model summarises trials for the prompts that ask for programs."""
    rules: Literal["faithful", "corrected"] = "faithful"
    """The rules of the original's code, or one entry per program with fresh priorities."""


def memory_of(options: PolcaOptions) -> CandidateHeap:
    """Return an empty memory."""
    rules = MemoryRules(
        priority=options.priority,
        kappa=options.kappa,
        high=options.score_max,
        size=options.memory,
        merge_every=options.merge_every,
        short_size=options.short_memory,
    )
    return FaithfulHeap(rules) if options.rules == "faithful" else CorrectedHeap(rules)


class Polca:
    """The search as a generator of phases. Lifetime: one run; replay rebuilds it."""

    def __init__(
        self, plan: Plan, score: Score, options: PolcaOptions, memory: CandidateHeap
    ) -> None:
        self._score, self._options, self._memory = score, options, memory
        self._epsilon = Epsilon(options.epsilon, options.calibration, options.quantile)
        self._summariser = Summariser(plan.seed, f"{plan.problem}#{plan.sample}")
        self._written = 0

    def search(self) -> Search:
        """Yield the phases of one iteration after the other."""
        memory, options = self._memory, self._options
        explored = yield from self._begin()
        while True:
            firsts = yield from self._measure(explored, "explore")
            if options.summary:
                yield from self._summariser.update([*memory.members(), *firsts])
            offered = yield from self._propose(firsts, explored)
            memory.end_trials()
            new = yield from self._admit(offered, explored)
            if options.validate_explored:
                yield from self._measure(explored, "validate")
                memory.store([*firsts, *new])
            else:
                memory.store([*new, *firsts])
            explored = memory.choose(options.candidates, use_best=options.use_best)
            if not explored:
                explored = yield from self._begin()

    def _begin(self) -> Generator[Batch, list[Turn], list[Copy]]:
        """Ask for first programs until there are some. The original is given one."""
        copies: list[Copy] = []
        while not copies:
            turns = yield [{"role": "draft", "operator": "begin"}] * self._options.candidates
            copies = self._copies(turns)
        self._memory.begin(copies)
        return self._memory.choose(self._options.candidates, use_best=self._options.use_best)

    def _copies(self, turns: Sequence[Turn]) -> list[Copy]:
        """Return the programs of drafts; a draft that was refused is none."""
        copies = []
        for turn in turns:
            if turn.source:
                vector = turn.embedding or embed(code_of(turn))
                copies.append(Copy(turn.source, turn.ask.id, self._written, vector))
                self._written += 1
        return copies

    def _measure(
        self, copies: Sequence[Copy], operator: str, reasons: Sequence[str] = ()
    ) -> Generator[Batch, list[Turn], list[Copy]]:
        """Measure programs; return the first of each set of equal ones, which gets the trials."""
        turns = yield [
            {
                "parents": (copy.writer,),
                "role": "measure",
                "operator": operator,
                "reason": reasons[place] if reasons else "",
            }
            for place, copy in enumerate(copies)
        ]
        firsts: dict[str, Copy] = {}
        for copy, turn in zip(copies, turns, strict=True):
            first = firsts.setdefault(copy.program, copy)
            score = self._score(turn)
            if score is not None:
                first.scores.append(score)
                first.trials.append(turn.ask.id)
        return list(firsts.values())

    def _propose(
        self, firsts: Sequence[Copy], explored: Sequence[Copy]
    ) -> Generator[Batch, list[Turn], list[Copy]]:
        """Ask for programs: for each one as many as it had trials in this iteration."""
        programs = [copy.program for copy in explored]
        parents = [copy for copy in firsts for _ in range(programs.count(copy.program))]
        turns = yield [
            {
                # A trial holds the feedback, a draft does not.
                "shown": (copy.trials[-1] if copy.trials else copy.writer,),
                "role": "draft",
                "operator": "propose",
                "instruction": self._summariser.instruction,
            }
            for _ in range(self._options.proposals)
            for copy in parents
        ]
        return self._copies(turns)

    def _admit(
        self, offered: Sequence[Copy], explored: Sequence[Copy]
    ) -> Generator[Batch, list[Turn], list[Copy]]:
        """Measure the proposals that lie outside the net."""
        vectors = [copy.embedding for copy in offered]
        self._epsilon.learn(vectors)
        known = {copy.program: copy.embedding for copy in (*self._memory.members(), *explored)}
        taken = admitted(vectors, list(known.values()), self._epsilon.value)
        new = [offered[item.place] for item in taken]
        reasons = [f"distance {item.distance:.4g}, {self._epsilon}" for item in taken]
        yield from self._measure(new, "admit", reasons)
        return new


def make(plan: Plan, score: Score) -> Strategy:
    """Return a new strategy; `PolcaOptions` lists its options."""
    options = PolcaOptions.read("polca", plan.options)
    if not isinstance(options.epsilon, str) and options.epsilon < 0:
        raise ConfigError(
            f"strategy polca, option 'epsilon': {options.epsilon:g} is no distance; give a number "
            "from 0 on, or calibrate"
        )
    least = 2 * options.candidates + 2  # They and their trials, and one proposal with its trial.
    if plan.turns < least:
        raise ConfigError(
            f"strategy polca, option 'candidates': {options.candidates} programs need at least "
            f"{least} requests, and there are {plan.turns}"
        )
    return Phases(plan, Polca(plan, score, options, memory_of(options)).search())
