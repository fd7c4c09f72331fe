"""Prompts of a run, made again from its log and its folder."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from tilewright.errors import ConfigError
from tilewright.knowledge.base import read_module
from tilewright.loop.estimates import Estimates
from tilewright.loop.history import Snapshot, failure_of
from tilewright.loop.policies.choosing import choice_request
from tilewright.loop.prompts.material import Document, Material
from tilewright.loop.shown_documents import FOLDER
from tilewright.records import Problem
from tilewright.records.base import digest_text
from tilewright.records.events import Ask, Event, RequestsIssued, RunStarted, Turn, TurnFinished


def documents_of(folder: Path, digests: Sequence[str]) -> Iterator[Document]:
    """Yield the documents that a run showed; one without a readable copy has no text."""
    for digest in digests:
        name = f"{digest[:16]}.md"
        try:
            source = (folder / FOLDER / name).read_text(encoding="utf-8")
            module = read_module(name, source, name)
        except (OSError, UnicodeDecodeError, ConfigError):
            yield Document(digest, name, "")
            continue
        unchanged = digest_text(source) == digest
        yield Document(digest, module.header.title, module.text if unchanged else "")


def material_of(
    ask: Ask,
    problem: Problem,
    language: str | None,
    earlier: Mapping[str, Turn],
    then: Snapshot,
    documents: Sequence[Document],
) -> Material:
    """Return the material of a request's prompt; `messages_of` writes it as this version does.

    `earlier` holds the turns that it shows and its parents, as far as the log has them. `then` is
    what was known at the request.
    """
    return Material(
        problem,
        language,
        form=ask.form,
        shown=[earlier[name] for name in ask.shown_turns if name in earlier],
        parents=[earlier[name] for name in ask.parents if name in earlier],
        estimates=then.estimates,
        failed=then.failed,
        documents=documents,
        instruction=choice_request(ask) if ask.choices else ask.instruction,
        is_choice=bool(ask.choices),
        override=ask.prompt_override,
    )


def replayed_material(
    events: Iterable[Event],
    problem_of: Callable[[str], Problem | None],
    documents: Callable[[Sequence[str]], Iterable[Document]] = lambda _: (),
    turn_of: Callable[[str], Turn | None] | None = None,
) -> Iterator[tuple[Turn, Material]]:
    """Yield each turn that a model answered, with the material of its prompt at the request.

    The material holds only turns that ended before the request was issued, and the estimates of
    that moment. So no prompt made of it shows code of a later step. A turn without a known problem
    is left out, and so is a `measure` turn, since it has no prompt. `turn_of` reads an earlier turn
    again; without it the memory holds all of them.
    """
    state = _State()
    ended: dict[str, Turn | None] = {}
    read = ended.get if turn_of is None else turn_of
    language = None
    for event in events:
        if isinstance(event, RunStarted):
            language = event.language
        elif isinstance(event, RequestsIssued):
            state.issued(event.asks, ended)
        elif isinstance(event, TurnFinished):
            turn, ask = event.turn, event.turn.ask
            names, then = state.at(ask, ended)
            problem = problem_of(ask.problem)
            if problem is not None and ask.role != "measure":
                earlier = {name: found for name in names if (found := read(name)) is not None}
                shown = tuple(documents(ask.documents)) if ask.documents else ()
                yield turn, material_of(ask, problem, language, earlier, then, shown)
            state.finished(turn)
            ended[ask.id] = turn if turn_of is None else None


class _State:
    """The state of a search up to some event of its log, as `RecordedHistory` has it."""

    def __init__(self) -> None:
        self._estimates = Estimates()
        self._failed: dict[str, tuple[str, ...]] = {}
        self._open: dict[str, tuple[tuple[str, ...], Snapshot]] = {}

    def issued(self, asks: Iterable[Ask], ended: Container[str]) -> None:
        """Keep what the prompts of new requests may show."""
        for ask in asks:
            self._open[ask.id] = self._now(ask, ended)

    def at(self, ask: Ask, ended: Container[str]) -> tuple[tuple[str, ...], Snapshot]:
        """Return the earlier turns and the estimates that a request's prompt may show.

        The log of an import has turns without requests; what is known at their end counts.
        """
        return self._open.pop(ask.id, None) or self._now(ask, ended)

    def finished(self, turn: Turn) -> None:
        """Take in a turn."""
        self._estimates.add(turn)
        if turn.ask.parents and (reason := failure_of(turn)):
            parent = turn.ask.parents[0]
            self._failed[parent] = (*self._failed.get(parent, ()), reason)

    def _now(self, ask: Ask, ended: Container[str]) -> tuple[tuple[str, ...], Snapshot]:
        seen = tuple(dict.fromkeys((*ask.shown_turns, *ask.parents)))
        failed = self._failed.get(ask.parents[0], ()) if ask.parents else ()
        then = Snapshot(self._estimates.snapshot(seen), failed)
        return tuple(name for name in seen if name in ended), then
