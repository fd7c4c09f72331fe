"""KernelEvolve: drafts first, then a tree of programs that a selector extends node by node.

The search of KernelEvolve (Meta, arXiv 2512.23236) is a fitness, a selector, one operator and a
stop rule. The fitness is the speed-up against the first baseline of the run, 0 for a program that
is not correct. The paper's fitness compares with compiled PyTorch: let `compile` be that baseline.
"""

from __future__ import annotations

import math
from itertools import islice
from typing import Literal

from pydantic import Field

from tilewright.errors import ConfigError
from tilewright.loop.archives.tree import Node, Tree, Value, greedy, tournament, uct
from tilewright.loop.candidate_text import code_of
from tilewright.loop.driver import Strategy
from tilewright.loop.estimates import Estimates
from tilewright.loop.random_values import chooser
from tilewright.loop.strategies.base import Options, Plan, Score, next_ask
from tilewright.loop.tried_changes import MAX_CHANGES, change_between, digest, outcome_line
from tilewright.records.events import Ask, Turn
from tilewright.records.outcome import Verdict

DRAFT_SHARE = 5
"""By default one request in five is a draft: the paper drafts for about 10 of 50 steps."""
MAX_DRAFTS = 10
"""Most drafts by default, as in the paper's longer runs."""
MAX_DEBUG_DEPTH = 3
"""Repairs in a row of one program. The paper gives no number; more rarely help."""
REPAIR = "The current program is not correct. Repair it."


class KernelEvolveOptions(Options):
    """The selector, its constants and the stop rules. The paper names the selectors alone."""

    selection: Literal["greedy", "uct", "evolution"] = "uct"
    drafts: int | None = Field(default=None, ge=1)
    """Independent programs at the start. `None`: a fifth of the requests, at most 10."""
    stall: int | None = Field(default=None, ge=1)
    """Results without a better program after which the search stops; `None`: never. The paper
    gives no number; with 20 a comparison ended after a third of its budget."""
    fan_out: int = Field(default=1, ge=1)
    """Requests per selected node. The paper gives no number; 1 uses every result at once."""
    threshold: float | None = Field(default=None, gt=0)
    """Fitness at which the search stops; `None`: it never does."""
    exploration: float = Field(default=math.sqrt(2), ge=0)
    """The constant C of UCT. The paper gives none; sqrt 2 is that of UCT's proof."""
    value: Value = "max"
    """Whether UCT reads the largest or the mean fitness of a subtree; the paper has both."""
    tournament: int = Field(default=3, ge=1)
    """Nodes of a tournament of `evolution`. The paper gives no number; 3 is a common one."""
    max_children: int | None = Field(default=None, ge=1)
    """Requests after which a node is exhausted; `None`: never. The paper gives no number."""
    others: int = Field(default=1, ge=0)
    """Other programs that a prompt shows, the fittest ones. The paper gives no number."""


class KernelEvolve:
    """Extends the tree as long as no stop rule holds. Lifetime: one run."""

    def __init__(self, plan: Plan, options: KernelEvolveOptions, drafts: int) -> None:
        self._plan, self._options, self._drafts = plan, options, drafts
        self.stopped = ""
        """`stalled` or `reached` after a stop rule held."""
        self._next = 0
        self._open_drafts = 0
        self._tree = Tree(MAX_DEBUG_DEPTH, options.max_children)
        self._estimates = Estimates()
        self._writers: dict[str, str] = {}
        """Digest of a program: the first request that wrote it."""
        self._codes: dict[str, str] = {}
        self._changes: dict[str, str] = {}
        """Node: what changed against its parent, and what this led to."""
        self._tried: dict[str, list[str]] = {}
        self._planned: list[str] = []
        """Nodes that were selected and not extended yet."""
        self._best = 0.0
        self._since_best = 0

    def ask(self, limit: int) -> list[Ask]:
        """Return drafts, and after the last one's result extensions of selected nodes."""
        asks: list[Ask] = []
        while len(asks) < limit and self._next < self._plan.turns and not self.stopped:
            if self._next >= self._drafts and self._open_drafts:
                break
            asks.append(self._draft() if self._next < self._drafts else self._extension())
            self._next += 1
        return asks

    def _draft(self) -> Ask:
        self._open_drafts += 1
        self._tree.expect(None)
        return next_ask(self._plan, self._next, operator="draft")

    def _extension(self) -> Ask:
        """Return a request that improves or repairs a node; another draft if none is open."""
        if not self._planned:
            node = self._selected()
            self._planned = [node.name] * self._options.fan_out if node is not None else []
        if not self._planned:
            return self._draft()
        node = self._tree.node(self._planned.pop())
        self._tree.expect(node.name)
        others = (each.name for each in self._tree.ranked() if each is not node)
        path = [self._changes.get(each.name, "") for each in islice(node.upwards(), MAX_CHANGES)]
        text = digest([*filter(None, path[::-1])], self._tried.get(node.name, []))
        instruction = "\n\n".join(filter(None, (REPAIR if node.buggy else "", text)))
        return next_ask(
            self._plan,
            self._next,
            (*[*islice(others, self._options.others)][::-1], node.name),
            (node.name,),
            form="evolve",
            instruction=instruction,
            operator="repair" if node.buggy else "improve",
        )

    def _selected(self) -> Node | None:
        options = self._options
        if options.selection == "greedy":
            return greedy(self._tree)
        if options.selection == "uct":
            return uct(self._tree, options.exploration, options.value)
        name = next_ask(self._plan, self._next).id
        return tournament(
            self._tree, options.tournament, chooser(self._plan.seed, name, "tournament")
        )

    def tell(self, turn: Turn) -> None:
        """Admit a judged program, whatever its verdict, and look at the stop rules."""
        self._estimates.add(turn)
        verdict, speedup = self._standing(turn)
        fitness = speedup or 0.0
        writer = self._writers.get(turn.source)
        if turn.ask.role == "measure":
            if verdict is not None and writer is not None:
                self._tree.rescore(writer, fitness, buggy=verdict != "correct")
            return
        parent = turn.ask.parents[0] if turn.ask.parents else None
        self._open_drafts -= parent is None
        self._tree.settle(parent, judged=verdict is not None)
        if verdict is None:
            return
        new = writer is None and bool(turn.source)
        if new:
            self._writers[turn.source] = turn.ask.id
            self._tree.add(turn.ask.id, parent, fitness, buggy=verdict != "correct")
            self._codes[turn.ask.id] = code_of(turn)
        else:
            self._tree.repeat(parent, fitness)
        if parent is not None:
            self._note(turn, parent, speedup, new=new)
        self._look_for_the_end(fitness)

    def _standing(self, turn: Turn) -> tuple[Verdict | None, float | None]:
        """Return verdict and speed-up of a turn's program; no verdict if this turn is unjudged."""
        if not turn.judgements or turn.judgements[0].verdict == "unjudged":
            return None, None
        estimate = self._estimates.of(turn.ask.id)
        # An answer without a program has no estimate.
        return estimate.verdict or turn.judgements[0].verdict, estimate.speedup

    def _note(self, turn: Turn, parent: str, speedup: float | None, *, new: bool) -> None:
        """Keep what a request changed and what this led to, for later prompts."""
        judgement = turn.judgements[0]
        before = self._tree.node(parent).fitness or None
        change = change_between(self._codes[parent], code_of(turn))
        line = f"{change}: {outcome_line(judgement.verdict, speedup, before, judgement.reason)}"
        self._tried.setdefault(parent, []).append(line)
        if new:
            self._changes[turn.ask.id] = line

    def _look_for_the_end(self, fitness: float) -> None:
        self._since_best = 0 if fitness > self._best else self._since_best + 1
        self._best = max(self._best, fitness)
        if self._options.threshold is not None and self._best >= self._options.threshold:
            self.stopped = "reached"
        elif self._options.stall is not None and self._since_best >= self._options.stall:
            self.stopped = self.stopped or "stalled"


def make(plan: Plan, score: Score) -> Strategy:  # noqa: ARG001 - one signature
    """Return a new strategy; its options are those of `KernelEvolveOptions`."""
    options = KernelEvolveOptions.read("kernel_evolve", plan.options)
    drafts = options.drafts or min(max(plan.turns // DRAFT_SHARE, 1), MAX_DRAFTS)
    if drafts > plan.turns:
        raise ConfigError(
            f"strategy kernel_evolve, option 'drafts': {drafts} drafts need at least {drafts} "
            f"requests, and there are {plan.turns}"
        )
    return KernelEvolve(plan, options, drafts)
