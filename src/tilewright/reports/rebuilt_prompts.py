"""Prompts of a run, made again from its log and its folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tilewright.errors import ConfigError
from tilewright.knowledge.base import read_module
from tilewright.loop.history import Snapshot
from tilewright.loop.policies.base import Message
from tilewright.loop.policies.choosing import choice_request
from tilewright.loop.prompts import messages_of
from tilewright.loop.prompts.material import Document, Material
from tilewright.loop.shown_documents import FOLDER
from tilewright.records import Problem
from tilewright.records.base import digest_text
from tilewright.records.events import Ask, Turn


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


def rebuilt_prompt(
    ask: Ask,
    problem: Problem,
    language: str | None,
    earlier: dict[str, Turn],
    then: Snapshot,
    documents: Sequence[Document],
) -> tuple[Message, ...]:
    """Return the messages of a request as this version writes them.

    `earlier` holds the turns that it shows and its parents, as far as the log has them. `then` is
    what was known at the request.
    """
    material = Material(
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
    return messages_of(material)
