"""Prompts of a run, made again from its log and its folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from tilewright.errors import ConfigError
from tilewright.knowledge.base import read_module
from tilewright.loop.history import NO_SNAPSHOT, RecordedHistory, Snapshot
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
        override=ask.prompt_override,
    )


def replayed_material(
    events: Iterable[Event],
    problem_of: Callable[[str], Problem | None],
    documents: Callable[[Sequence[str]], Iterable[Document]] = lambda _: (),
) -> Iterator[tuple[Turn, Material]]:
    """Yield each turn that a model answered, with the material of its prompt at the request.

    The material holds only turns that ended before the request was issued, and the estimates of
    that moment. So no prompt made of it shows code of a later step. A turn without a known problem
    is left out, and so is a `measure` turn, since it has no prompt.
    """
    issued, language = _Issued(), None
    history = RecordedHistory(issued)
    known: dict[str, dict[str, Turn]] = {}
    for event in events:
        if isinstance(event, RunStarted):
            language = event.language
        elif isinstance(event, RequestsIssued):
            issued.asks = list(event.asks)
            history.ask(event.limit)
            known |= {ask.id: _earlier(ask, history.turns) for ask in event.asks}
        elif isinstance(event, TurnFinished):
            ask, problem = event.turn.ask, problem_of(event.turn.ask.problem)
            earlier = known.pop(ask.id, None)
            if earlier is None:
                # The log of an import has turns without requests.
                earlier = _earlier(ask, history.turns)
            if problem is not None and ask.role != "measure":
                then = history.snapshots.get(ask.id, NO_SNAPSHOT)
                shown = tuple(documents(ask.documents)) if ask.documents else ()
                yield event.turn, material_of(ask, problem, language, earlier, then, shown)
            history.tell(event.turn)


class _Issued:
    """The requests of a log, in place of the strategy that made them. Lifetime: one replay."""

    def __init__(self) -> None:
        self.asks: list[Ask] = []

    def ask(self, limit: int) -> list[Ask]:  # noqa: ARG002 - the log holds no more than that
        asks, self.asks = self.asks, []
        return asks

    def tell(self, turn: Turn) -> None:
        """Do nothing: the log holds the next requests."""


def _earlier(ask: Ask, turns: Mapping[str, Turn]) -> dict[str, Turn]:
    """Return the turns that a request shows or builds on, as far as they ended before it."""
    return {name: turns[name] for name in (*ask.shown_turns, *ask.parents) if name in turns}
