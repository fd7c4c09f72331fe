"""The documents that prompts show: modules of the knowledge base, chosen for each request.

The log names shown documents by digest, and the run folder holds a copy of each. A resumed search
would choose others if one changed, so it refuses to continue and names the document.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tilewright.config import LoopSection
from tilewright.errors import RecordError, writing
from tilewright.knowledge import KnowledgeBase, load_knowledge, read_module, retrieve
from tilewright.loop.prompts.material import Document
from tilewright.records import Problem
from tilewright.records.events import Ask, Event, RequestsIssued, Turn

FOLDER = "documents"
EXAMPLES = "examples"
"""Folder of candidates of other problems in a run (`tilewright.loop.warm_start`)."""
BUNDLED = "bundled"
"""Value of the setting `loop.knowledge` that takes the bundled modules alone."""
WITHOUT = ("say", "choose", "measure")
"""Roles whose prompts show no documents: none of them writes a program."""


@dataclass
class Library:
    """Chooses documents for requests, and keeps a copy of each shown one. Lifetime: one run."""

    base: KnowledgeBase
    problems: Mapping[str, Problem]
    section: LoopSection
    device: str
    """Model of the device that evaluates."""
    folder: Path
    """Of the run."""
    _shown: dict[str, Document] = field(default_factory=dict)

    def choose(self, ask: Ask, turns: Mapping[str, Turn]) -> tuple[str, ...]:
        """Return the digests of the documents for a request, and store new ones in the run.

        The query is the instruction, the feedback about the parents, and the problem. The index is
        read first: only headers are compared, and only chosen modules are loaded into the prompt.
        """
        if ask.role in WITHOUT:
            return ()
        problem = self.problems[ask.problem]
        said = [turns[name].feedback for name in ask.parents if name in turns]
        words = "\n".join((ask.instruction, *said, problem.description, problem.source.text))
        found = retrieve(
            self.base,
            words,
            language=self.section.language,
            device=self.device,
            most_modules=self.section.documents,
            most_tokens=self.section.document_tokens,
        )
        for module in found:
            if module.digest not in self._shown:
                shown = Document(module.digest, module.header.title, module.text)
                self._shown[module.digest] = shown
                self._store(module.digest, module.source)
        return tuple(module.digest for module in found)

    def document(self, digest: str) -> Document:
        """Return a document that was chosen before."""
        return self._shown[digest]

    def _store(self, digest: str, source: str) -> None:
        path = self.folder / FOLDER / f"{digest[:16]}.md"
        with writing(path):
            path.parent.mkdir(exist_ok=True)
            path.write_text(source, encoding="utf-8")


def open_library(
    section: LoopSection, problems: Iterable[Problem], device: str, folder: Path
) -> Library | None:
    """Return the library of a run; `None` if its prompts show no documents.

    Raises:
        ConfigError: the folder of `loop.knowledge` cannot be used.
    """
    base = KnowledgeBase(())
    if section.knowledge is not None:
        own = None if section.knowledge == BUNDLED else Path(section.knowledge)
        base = load_knowledge(own)
    # Candidates of other problems, which the run's beginning has put there.
    examples = [
        read_module(f"examples/{path.stem}", path.read_text(encoding="utf-8"), path)
        for path in sorted((folder / EXAMPLES).glob("*.md"))
    ]
    if not base.entries and not examples:
        return None
    base = base.with_modules(KnowledgeBase(tuple(examples)))
    return Library(base, {item.id: item for item in problems}, section, device, folder)


def check_unchanged(library: Library, events: Iterable[Event]) -> None:
    """Check that every document of a log is still in the knowledge base as it was.

    Raises:
        RecordError: one was changed or removed; the message names it.
    """
    known = {module.digest for module in library.base.entries}
    shown = {
        digest
        for event in events
        if isinstance(event, RequestsIssued)
        for ask in event.asks
        for digest in ask.documents
    }
    for digest in sorted(shown - known):
        copy = library.folder / FOLDER / f"{digest[:16]}.md"
        title = _title(copy)
        raise RecordError(
            f"the document {title} was changed or removed since the search began, so it cannot "
            f"be continued; restore the text that {copy} holds, or start a new run"
        )


def _title(path: Path) -> str:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return path.stem
    found = (line.removeprefix("title:").strip() for line in lines if line.startswith("title:"))
    return repr(next(found, path.stem))
