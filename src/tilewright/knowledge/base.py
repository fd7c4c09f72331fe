"""Modules of the knowledge base: Markdown files with a header, found by the index of their folder.

Each folder has an `index.md`. A line `- [title](path): about` of it names a module, or the index of
a folder below. Every Markdown file below the folder must be in an index, so that no module is lost.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tilewright.errors import ConfigError
from tilewright.records import digest_text
from tilewright.records.field_faults import with_path

BUNDLED = Path(__file__).parent
"""Folder of the bundled knowledge base."""
INDEX = "index.md"
ANY = "any"
"""Entry of `languages` and `devices` that admits all of them."""
GUIDE = "docs/guides/add-knowledge.md shows the format"
MAX_FILE_BYTES = 1 << 16
"""Most bytes of a module or an index, in bytes; a prompt shows modules whole."""
BYTES_PER_TOKEN = 3
"""Bytes of a token, for an estimate without a tokenizer. English text has about four, code fewer,
so the estimate is rather too high than too low."""

_LINE = re.compile(r"^[-*] \[([^\]]+)\]\(([^)\s]+)\)(?::[ \t]*(.*))?$", re.MULTILINE)
_HEADER = re.compile(r"\A---\n(.*?)^---\n", re.DOTALL | re.MULTILINE)


class ModuleHeader(BaseModel):
    """The fixed header of a module: YAML between two lines `---`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str = Field(min_length=1)
    keywords: tuple[str, ...] = Field(min_length=1)
    languages: tuple[str, ...] = Field(min_length=1)
    """Names of languages to which the module applies, or `any`."""
    devices: tuple[str, ...] = Field(min_length=1)
    """Parts of the names of device models, for example `H100`, or `any`."""
    sources: tuple[str, ...] = Field(min_length=1)
    """Addresses or titles of documents that support the text."""


@dataclass(frozen=True)
class KnowledgeModule:
    """One note of the knowledge base."""

    name: str
    """Path below the folder of the base, without `.md`."""
    header: ModuleHeader
    text: str
    """The body, without the header."""
    source: str
    """The whole file, which `digest` names and which a run copies."""
    about: str = ""
    """The words of the index about it."""

    @property
    def digest(self) -> str:
        """Return the sha256 of the whole file."""
        return digest_text(self.source)

    @property
    def tokens(self) -> int:
        """Return an estimate of the tokens of title and text in a prompt."""
        shown = f"{self.header.title}\n{self.text}"
        return -(-len(shown.encode()) // BYTES_PER_TOKEN)

    @property
    def general(self) -> bool:
        """Tell whether it applies to every device."""
        return ANY in self.header.devices


@dataclass(frozen=True)
class KnowledgeBase:
    """All modules of one or several folders, sorted by name."""

    entries: tuple[KnowledgeModule, ...]

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read the modules that the index of a folder lists.

        Raises:
            ConfigError: a folder has no index, or a file cannot be used; the message names it.
        """
        if not folder.is_dir():
            raise ConfigError(f"{folder}: no such folder; name a folder with an {INDEX}")
        listed = list(_listed(folder, PurePosixPath()))
        names = [module.name for module in listed]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise ConfigError(f"{folder / repeated[0]}.md: an index lists it twice; list it once")
        if not names:
            raise ConfigError(f"{folder / INDEX}: it lists no module; {GUIDE}")
        _refuse_unlisted(folder, set(names))
        return cls(tuple(sorted(listed, key=lambda module: module.name)))

    def index(self) -> tuple[tuple[str, ModuleHeader], ...]:
        """Return the name and the header of each module, for a choice without the texts."""
        return tuple((module.name, module.header) for module in self.entries)

    def modules(self, names: Iterable[str]) -> tuple[KnowledgeModule, ...]:
        """Return the modules of these names, in this order.

        Raises:
            ConfigError: the base has no module of a name.
        """
        known = {module.name: module for module in self.entries}
        wanted = tuple(names)
        for name in wanted:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
                advice = f"did you mean {near[0]!r}?" if near else "see tilewright knowledge list"
                raise ConfigError(f"no module {name!r} in the knowledge base; {advice}")
        return tuple(known[name] for name in wanted)

    def by_digest(self, digest: str) -> KnowledgeModule:
        """Return the module whose file has this digest.

        Raises:
            ConfigError: there is none, since a file was changed or removed.
        """
        found = next((module for module in self.entries if module.digest == digest), None)
        if found is None:
            raise ConfigError(
                f"the knowledge base has no module with the digest {digest[:12]}; a file was "
                "changed or removed since the digest was recorded"
            )
        return found

    def with_modules(self, other: KnowledgeBase) -> KnowledgeBase:
        """Return a base with the modules of both; those of `other` replace those of equal names."""
        merged = {module.name: module for module in (*self.entries, *other.entries)}
        return KnowledgeBase(tuple(merged[name] for name in sorted(merged)))


def load_knowledge(folder: Path | None = None) -> KnowledgeBase:
    """Return the bundled modules, and those of `folder`, which replace those of equal names."""
    bundled = KnowledgeBase.load(BUNDLED)
    return bundled if folder is None else bundled.with_modules(KnowledgeBase.load(folder))


def read_module(name: str, source: str, where: object, about: str = "") -> KnowledgeModule:
    """Return the module that a file holds; `where` names the file in errors."""
    found = _HEADER.match(source)
    if found is None:
        raise ConfigError(f"{where}: it must begin with a header between two lines ---; {GUIDE}")
    try:
        document: Any = yaml.safe_load(found[1])
        header = ModuleHeader.model_validate(document)
    except yaml.YAMLError as error:
        raise ConfigError(
            f"{where}: the header is no YAML: {' '.join(str(error).split())}"
        ) from error
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise ConfigError(f"{where}: {with_path(field, first)}; {GUIDE}") from error
    text = source[found.end() :].strip()
    if not text:
        raise ConfigError(f"{where}: it has a header and no text; write the text below the header")
    return KnowledgeModule(name, header, text, source, about)


def _listed(root: Path, place: PurePosixPath) -> Iterator[KnowledgeModule]:
    """Yield the modules that the index of a folder lists, and those of the folders below."""
    index = root / place / INDEX
    if not index.is_file():
        advice = "write one with a line `- [title](file.md): about` for each module"
        raise ConfigError(f"{root / place}: it has no {INDEX}; {advice}; {GUIDE}")
    for _, link, about in _LINE.findall(_text(index)):
        path = PurePosixPath(link)
        if path.is_absolute() or ".." in path.parts or path.suffix != ".md":
            raise ConfigError(f"{index}: {link}: a line may name Markdown files below its folder")
        if path.name == INDEX:
            if path.parent == PurePosixPath():
                raise ConfigError(f"{index}: it lists itself; remove this line")
            yield from _listed(root, place / path.parent)
            continue
        file = root / place / path
        if not file.is_file():
            raise ConfigError(f"{file}: {index} lists it, and it is missing; write or unlist it")
        name = (place / path.with_suffix("")).as_posix()
        yield read_module(name, _text(file), file, about.strip())


def _refuse_unlisted(folder: Path, names: set[str]) -> None:
    for file in sorted(folder.rglob("*.md")):
        name = file.relative_to(folder).with_suffix("").as_posix()
        if file.name != INDEX and name not in names:
            raise ConfigError(f"{file}: no {INDEX} lists it; add a line for it, or move it away")


def _text(file: Path) -> str:
    try:
        raw = file.read_bytes()
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from error
    if len(raw) > MAX_FILE_BYTES:
        raise ConfigError(f"{file}: it has {len(raw)} bytes, most {MAX_FILE_BYTES}; split it")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: it is not UTF-8 (byte {error.start}); convert it") from error
    return text.replace("\r\n", "\n")
