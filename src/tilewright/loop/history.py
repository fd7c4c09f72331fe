"""The history of a run: its finished turns, their estimates, and what each prompt may show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from tilewright.loop.driver import Strategy
from tilewright.loop.estimates import Estimate, Estimates
from tilewright.loop.prompts.material import Document
from tilewright.loop.strategies.base import ArchiveCell, cells_of
from tilewright.records.events import Ask, Turn


@dataclass(frozen=True)
class Snapshot:
    """The state at the moment of a request, which its prompt shows however late it is written."""

    estimates: Mapping[str, Estimate] = field(default_factory=dict)
    failed: tuple[str, ...] = ()
    """Reasons why earlier attempts on the first parent came to nothing, oldest first."""


NO_SNAPSHOT = Snapshot()
BOUND_FORMS = ("patch", "action")
"""Forms of requests for one certain change of a program."""


class Documents(Protocol):
    """Chooses the documents that prompts show. Lifetime: one run."""

    def choose(self, ask: Ask, turns: Mapping[str, Turn]) -> tuple[str, ...]:
        """Return the digests of the documents of a request, from the turns so far."""

    def document(self, digest: str) -> Document:
        """Return a document that was chosen before."""


class RecordedHistory:
    """A strategy that keeps the finished turns for later prompts. Lifetime: one run."""

    def __init__(self, strategy: Strategy, documents: Documents | None = None) -> None:
        self._strategy, self.documents = strategy, documents
        self.turns: dict[str, Turn] = {}
        """Turns by the id of their request, without the parts that no prompt shows."""
        self.estimates = Estimates()
        self.snapshots: dict[str, Snapshot] = {}
        """By the id of each request without a result."""
        self.places: dict[str, int] = {}
        """By the id of each request without a result: the number of earlier requests of its
        trajectory that any program may answer."""
        self._programs = Counter[tuple[str, int]]()
        self._judged: dict[tuple[str, int, str], str] = {}
        self._failed: dict[str, tuple[str, ...]] = {}

    @property
    def stopped(self) -> str:
        """Return why the strategy stopped by its own rule; empty if it did not."""
        return str(getattr(self._strategy, "stopped", ""))

    def cells(self) -> list[ArchiveCell]:
        """Return the cells of the archives, for views."""
        return cells_of(self._strategy)

    def ask(self, limit: int) -> list[Ask]:
        """Return the strategy's requests, with their documents."""
        asks = []
        for ask in self._strategy.ask(limit):
            digests = self.documents.choose(ask, self.turns) if self.documents else ()
            asks.append(ask.model_copy(update={"documents": digests}) if digests else ask)
            seen = tuple(dict.fromkeys((*ask.shown_turns, *ask.parents)))
            failed = self._failed.get(ask.parents[0], ()) if ask.parents else ()
            self.snapshots[ask.id] = Snapshot(self.estimates.snapshot(seen), failed)
            trajectory = (ask.problem, ask.sample)
            self.places[ask.id] = self._programs[trajectory]
            self._programs[trajectory] += asks_for_any_program(ask)
        return asks

    def settle(self, turn: Turn) -> Turn:
        """Mark a turn whose code was judged before: it costs nothing, and is no further trial."""
        first = self.judged_before(turn.ask, turn.source)
        if first is None or turn.ask.role != "propose" or not turn.judgements:
            return turn
        free = tuple(item.model_copy(update={"seconds": 0.0}) for item in turn.judgements)
        return turn.model_copy(update={"repeats": first.ask.id, "judgements": free})

    def judged_before(self, ask: Ask, source: str) -> Turn | None:
        """Return the first turn of a request's trajectory with this code that was judged."""
        known = self._judged.get((ask.problem, ask.sample, source)) if source else None
        return None if known is None else self.turns[known]

    def tell(self, turn: Turn) -> None:
        """Keep a turn, and give it to the strategy."""
        ask, reply = turn.ask, turn.reply
        if reply is not None:
            reply = reply.model_copy(update={"reasoning": "", "tokens": (), "logprobs": ()})
        self.turns[ask.id] = turn.model_copy(update={"reply": reply})
        self.snapshots.pop(ask.id, None)
        self.places.pop(ask.id, None)
        self.estimates.add(turn)
        if turn.source and turn.judgements and turn.judgements[0].verdict != "unjudged":
            self._judged.setdefault((ask.problem, ask.sample, turn.source), ask.id)
        if ask.parents and (reason := failure_of(turn)):
            parent = ask.parents[0]
            self._failed[parent] = (*self._failed.get(parent, ()), reason)
        self._strategy.tell(turn)


def asks_for_any_program(ask: Ask) -> bool:
    """Tell whether any program may answer a request: it demands no certain change of another."""
    return ask.role in ("propose", "draft") and ask.form not in BOUND_FORMS


def failure_of(turn: Turn) -> str:
    """Return why an attempt came to nothing; empty if it did not, or if nobody judged it."""
    if turn.refused:
        return turn.refused
    if not turn.judgements or turn.judgements[0].verdict in ("correct", "unjudged"):
        return ""
    return f"{turn.judgements[0].verdict}: {turn.judgements[0].reason}"
