"""Steps of a search: edges from a program to the one that was written to improve on it.

The rules are those of Kernel-Smith's step-centric data (arXiv 2603.28342, section on training).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from tilewright.loop.estimates import NORMAL_95, Estimate, Estimates
from tilewright.records.events import Ask, Event, Turn, TurnFinished
from tilewright.records.outcome import Verdict

Kind = Literal["translation", "repair", "improvement"]
"""`translation`: from PyTorch to another language. `repair`: from a program that is not correct.
`improvement`: from a correct program."""
PYTORCH = "torch"
"""Language of programs without own kernels; the reference is one."""
WRITES = ("propose", "draft")
"""Roles whose answers are programs."""


@dataclass(frozen=True)
class Edge:
    """A step; `parent` is `None` if it began with the reference."""

    parent: str | None
    kind: Kind
    gain: float | None = None
    """Ratio of both estimates; of a translation from the reference the speed-up itself."""
    low: float | None = None
    high: float | None = None
    """95 % interval of the gain; its variance is the sum of both variances of the logarithms."""


@dataclass
class SearchFacts:
    """The estimates and verdicts of all programs of a log. Lifetime: one export."""

    estimates: Estimates = field(default_factory=Estimates)
    turns: dict[str, Turn] = field(default_factory=dict)
    """Turns by request, without texts. A draft has the judgement of the request that judged it."""

    def add(self, turn: Turn) -> None:
        """Take in a turn."""
        self.estimates.add(turn)
        bare = {"reply": None, "feedback": "", "code": "", "embedding": ()}
        self.turns.setdefault(turn.ask.id, turn.model_copy(update=bare))
        if turn.ask.role != "measure" or not turn.judgements:
            return
        for name in turn.ask.parents:
            draft = self.turns.get(name)
            if draft is not None and _verdict(draft) is None:
                more = {"judgements": turn.judgements, "language": turn.language}
                self.turns[name] = draft.model_copy(update=more)

    def judged(self, turn: Turn) -> Turn:
        """Return a turn with its judgement, also if another request judged it."""
        known = self.turns.get(turn.ask.id, turn)
        more = {"judgements": known.judgements, "language": known.language}
        return turn.model_copy(update=more)

    def verdict(self, name: str) -> Verdict | None:
        """Return the worst verdict of all trials of a program; `None` if it was never judged."""
        known = self.turns.get(name)
        return self.estimates.of(name).verdict or (_verdict(known) if known is not None else None)

    def edge(self, ask: Ask) -> Edge | None:
        """Return the step of a request; `None` if its program or its parent was never judged.

        Of several parents the fastest one counts, or else the first one.
        """
        if self.verdict(ask.id) is None:
            return None
        own = self.estimates.of(ask.id)
        if not ask.parents:
            return Edge(None, "translation", own.speedup, *(own.interval or (None, None)))
        parent = self._parent(ask)
        before = self.verdict(parent) if parent is not None else None
        if parent is None or before is None:
            return None
        if before != "correct":
            return Edge(parent, "repair")
        then, now = (self._language(name) for name in (parent, ask.id))
        kind: Kind = "translation" if then == PYTORCH != now else "improvement"
        return Edge(parent, kind, *_ratio(own, self.estimates.of(parent)))

    def keeps(self, ask: Ask, edge: Edge) -> bool:
        """Tell whether a step is an example.

        Its program is correct. An improvement must also be faster than its parent, so that equal
        code, whose ratio is exactly 1, is none.
        """
        if self.verdict(ask.id) != "correct":
            return False
        return edge.kind != "improvement" or (edge.gain is not None and edge.gain > 1.0)

    def best_steps(self) -> set[str]:
        """Return the request with the largest gain on the way to each trajectory's best program.

        Prompts of all steps would leak the answers of later ones, and those of first steps teach
        translation alone. Therefore Kernel-Smith trains its policy on these.
        """
        best: dict[tuple[str, int], tuple[float, str]] = {}
        for name, turn in self.turns.items():
            speedup = self.estimates.of(name).speedup
            if turn.ask.role in WRITES and speedup is not None:
                key = (turn.ask.problem, turn.ask.sample)
                best[key] = max(best.get(key, (0.0, "")), (speedup, name), key=lambda pair: pair[0])
        return {step for _, name in best.values() if (step := self._largest_gain(name))}

    def _largest_gain(self, name: str | None) -> str:
        found, seen = (0.0, ""), set[str]()
        while name is not None and name in self.turns and name not in seen:
            seen.add(name)
            edge = self.edge(self.turns[name].ask)
            if edge is not None and edge.gain is not None and edge.gain >= found[0]:
                found = (edge.gain, name)
            name = edge.parent if edge is not None else None
        return found[1]

    def _parent(self, ask: Ask) -> str | None:
        """Return the program that a request improves on; `None` if the log has none of them."""
        known = [name for name in ask.parents if name in self.turns]
        speeds = [self.estimates.of(name).speedup or 0.0 for name in known]
        return known[speeds.index(max(speeds))] if known else None

    def _language(self, name: str) -> str:
        return self.turns[name].language


def facts_of(events: Iterable[Event]) -> SearchFacts:
    """Return the facts of a log."""
    facts = SearchFacts()
    for event in events:
        if isinstance(event, TurnFinished):
            facts.add(event.turn)
    return facts


def _verdict(turn: Turn) -> Verdict | None:
    """Return the verdict of a turn itself; `None` if it is unjudged."""
    verdict = turn.judgements[0].verdict if turn.judgements else "unjudged"
    return None if verdict == "unjudged" else verdict


def _ratio(own: Estimate, before: Estimate) -> tuple[float | None, float | None, float | None]:
    """Return the ratio of two speed-ups with its 95 % interval."""
    if own.log_speedup is None or before.log_speedup is None:
        return None, None, None
    if own is before:
        return 1.0, 1.0, 1.0
    log = own.log_speedup - before.log_speedup
    half = NORMAL_95 * math.hypot(_error(own), _error(before))
    return math.exp(log), math.exp(log - half), math.exp(log + half)


def _error(estimate: Estimate) -> float:
    """Return the standard error of the logarithm of a speed-up."""
    low, high = estimate.interval or (1.0, 1.0)
    return math.log(high / low) / (2 * NORMAL_95)
