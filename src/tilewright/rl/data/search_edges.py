"""Steps of a search: edges from a program to the one that was written to improve on it.

The rules are those of Kernel-Smith's step-centric data (arXiv 2603.28342, section on training).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Literal

from tilewright.loop.estimates import NORMAL_95, Estimate, Estimates
from tilewright.records.events import Event, Role, Turn, TurnFinished
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


@dataclass(frozen=True, slots=True)
class LoggedTurn:
    """A turn of a search, without its texts."""

    trajectory: tuple[str, int]
    """Problem and number of the trajectory."""
    role: Role
    parents: tuple[str, ...]
    source: str
    """Digest of its program."""
    language: str
    verdict: Verdict | None
    """Its own verdict; `None`: it is unjudged, or another request judges it."""


@dataclass
class SearchFacts:
    """The estimates and verdicts of all programs of a log. Lifetime: one export."""

    estimates: Estimates = field(default_factory=Estimates)
    nodes: dict[str, LoggedTurn] = field(default_factory=dict)
    """Turns by request. A draft has the verdict of the request that judged it."""
    _judged: dict[str, Turn] = field(default_factory=dict)
    """The requests that judged drafts, by the draft."""

    def add(self, turn: Turn) -> None:
        """Take in a turn; of several turns of one request the last one counts."""
        ask = turn.ask
        self.estimates.add(turn)
        place, verdict = (ask.problem, ask.sample), _verdict(turn)
        node = LoggedTurn(place, ask.role, ask.parents, turn.source, turn.language, verdict)
        # A draft keeps the verdict of the request that judged it.
        if ask.id not in self._judged:
            self.nodes[ask.id] = node
        for name in ask.parents if ask.role == "measure" and turn.judgements else ():
            draft = self.nodes.get(name)
            if draft is not None and draft.verdict is None:
                self.nodes[name] = replace(draft, language=turn.language, verdict=verdict)
                self._judged[name] = turn.model_copy(update={"reply": None, "code": ""})

    def judged(self, turn: Turn) -> Turn:
        """Return a turn with its judgement, also if another request judged it."""
        by = self._judged.get(turn.ask.id)
        if by is None:
            return turn
        return turn.model_copy(update={"judgements": by.judgements, "language": by.language})

    def verdict(self, name: str) -> Verdict | None:
        """Return the worst verdict of all trials of a program; `None` if it was never judged."""
        node = self.nodes.get(name)
        return self.estimates.of(name).verdict or (node.verdict if node is not None else None)

    def edge(self, name: str) -> Edge | None:
        """Return the step of a request; `None` if its program or its parent was never judged.

        Of several parents the fastest one counts, or else the first one.
        """
        if self.verdict(name) is None:
            return None
        own, node = self.estimates.of(name), self.nodes[name]
        if not node.parents:
            return Edge(None, "translation", own.speedup, *(own.interval or (None, None)))
        parent = self._parent(node)
        before = self.verdict(parent) if parent is not None else None
        if parent is None or before is None:
            return None
        if before != "correct":
            return Edge(parent, "repair")
        ported = self.nodes[parent].language == PYTORCH != node.language
        kind: Kind = "translation" if ported else "improvement"
        return Edge(parent, kind, *_ratio(own, self.estimates.of(parent)))

    def keeps(self, name: str, edge: Edge) -> bool:
        """Tell whether a step is an example.

        Its program is correct. An improvement must also be faster than its parent, so that equal
        code, whose ratio is exactly 1, is none.
        """
        if self.verdict(name) != "correct":
            return False
        return edge.kind != "improvement" or (edge.gain is not None and edge.gain > 1.0)

    def best_steps(self) -> set[str]:
        """Return the request with the largest gain on the way to each trajectory's best program.

        Prompts of all steps would leak the answers of later ones, and those of first steps teach
        translation alone. Therefore Kernel-Smith trains its policy on these.
        """
        best: dict[tuple[str, int], tuple[float, str]] = {}
        for name, node in self.nodes.items():
            speedup = self.estimates.of(name).speedup
            if node.role in WRITES and speedup is not None:
                known = best.get(node.trajectory, (0.0, ""))
                # Of equal ones the first stays.
                best[node.trajectory] = max(known, (speedup, name), key=itemgetter(0))
        return {step for _, name in best.values() if (step := self._largest_gain(name))}

    def _largest_gain(self, name: str | None) -> str:
        found, seen = (0.0, ""), set[str]()
        while name is not None and name in self.nodes and name not in seen:
            seen.add(name)
            edge = self.edge(name)
            if edge is not None and edge.gain is not None and edge.gain >= found[0]:
                found = (edge.gain, name)
            name = edge.parent if edge is not None else None
        return found[1]

    def _parent(self, node: LoggedTurn) -> str | None:
        """Return the program that a turn improves on; `None` if the log has none of them."""
        known = [name for name in node.parents if name in self.nodes]
        speeds = [self.estimates.of(name).speedup or 0.0 for name in known]
        return known[speeds.index(max(speeds))] if known else None


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
