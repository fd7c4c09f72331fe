"""Rules of prose: how text becomes sentences, and what a sentence may not contain."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

__all__ = [
    "CHANGE_TYPES",
    "MAX_BULLET_CHARACTERS",
    "MAX_WORDS",
    "MAX_WORDS_IN_RECORDS",
    "Finding",
    "Sentence",
    "bullets",
    "check_bullets",
    "check_name",
    "check_prose",
    "sentences",
]

MAX_WORDS: Final = 25
"""Most words of a sentence. Readers of technical English lose longer ones."""

MAX_WORDS_IN_RECORDS: Final = 30
"""Most words of a sentence in decisions, lab notes and measurements, which quote conditions."""

MAX_BULLET_CHARACTERS: Final = 200
"""Most characters of a changelog bullet: two lines of a terminal, hence one change."""

CHANGE_TYPES: Final = ("Added", "Changed", "Fixed", "Removed", "Security")

CODE: Final = "CODE"
"""The one word that stands in a sentence for inline code."""

ABBREVIATIONS: Final = frozenset({"al.", "approx.", "cf.", "e.g.", "etc.", "i.e.", "vs."})

TABLE: Final = Path(__file__).resolve().parents[1] / "tests/conventions/retired_terms.yaml"
"""The table of retired terms; its key `prose` has what prose and names may not contain."""

_TERMS: Final[dict[str, list[str]]] = yaml.safe_load(TABLE.read_text(encoding="utf-8"))["prose"]
RETIRED_NAME_PARTS: Final = frozenset(_TERMS["name_parts"])

_RETIRED = re.compile(rf"\b(?:{'|'.join(_TERMS['words'] + _TERMS['phrases'])})\b", re.IGNORECASE)
_OPENING = re.compile(r"^(?:what|who|whoever|nobody)\b(?!-)", re.IGNORECASE)
_END = re.compile(r"(?<=[.!?])[\"')\]*_]*\s+")
_FENCE = re.compile(r"^\s*(```+|~~~+)")
_ITEM = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+(.*)$")
_SECTION = re.compile(
    r"^(?:Args|Arguments|Attributes|Example|Examples|Note|Raises|Returns|Yields):$"
)
# Blank lines, tables, doctests and comments.
_GAP = re.compile(r"^\s*(?:$|\||>>>|<!--.*-->\s*$)")
# Where it follows a gap that is not in a list.
_CODE_LINE = re.compile(r"^ {4,}(?!\s*(?:[-*+]|\d+[.)])\s)")
_ENTRY = re.compile(r"^\s+\*{0,2}\w[\w.]*(?: \([^)]*\))?: ")


@dataclass(frozen=True)
class Sentence:
    """A sentence with its line, counted from 1; `heading` where it is a title."""

    line: int
    text: str
    heading: bool = False

    @property
    def words(self) -> int:
        """Number of words; a number or a piece of inline code is one."""
        return sum(any(c.isalnum() for c in part) for part in self.text.split())


@dataclass(frozen=True, order=True)
class Finding:
    """A breach of one rule, with the file and line where it stands."""

    path: str
    line: int
    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: {self.text}"


@dataclass(frozen=True)
class _Block:
    lines: tuple[tuple[int, str], ...]
    heading: bool = False


def sentences(text: str) -> Iterator[Sentence]:
    """Yield the sentences of Markdown or of a docstring, without code blocks and tables."""
    for block in _blocks(text):
        starts, joined = [], ""
        for number, line in block.lines:
            starts.append((len(joined), number))
            joined += line.strip() + " "
        joined = _plain(joined)
        for offset, sentence in _split(joined):
            yield Sentence(_line_at(starts, offset), sentence, block.heading)


def bullets(text: str) -> Iterator[tuple[int, str]]:
    """Yield the list items of Markdown, each on one line, with its line number."""
    item: tuple[int, str] | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        match = _ITEM.match(line)
        if match:
            if item:
                yield item
            item = (number, match[1])
        elif item and line.strip() and line[0] == " ":
            item = (item[0], f"{item[1]} {line.strip()}")
        elif item:
            yield item
            item = None
    if item:
        yield item


def check_prose(
    path: str, text: str, *, max_words: int = MAX_WORDS, line: int = 1
) -> list[Finding]:
    """Return what breaks a rule of prose in `text`, whose first line is line `line` of `path`."""
    found = []
    for sentence in sentences(text):
        where = sentence.line + line - 1
        shown = " ".join(sentence.text.split())
        shown = shown if len(shown) <= 90 else f"{shown[:87]}..."
        if sentence.words > max_words:
            found.append(Finding(path, where, f"{sentence.words} words, most {max_words}", shown))
        opening = _OPENING.match(sentence.text.lstrip("\"'(*_"))
        if opening and not sentence.heading and not sentence.text.rstrip("\"')*_").endswith("?"):
            found.append(Finding(path, where, f"opens with {opening[0]!r}", shown))
        found += [
            Finding(path, where, f"retired {match[0]!r}", shown)
            for match in _RETIRED.finditer(sentence.text)
        ]
    return found


def check_bullets(path: str, text: str) -> list[Finding]:
    """Return the bullets of a changelog that are too long or do not open with a type of change."""
    found = []
    for line, item in bullets(text):
        shown = item if len(item) <= 90 else f"{item[:87]}..."
        if len(item) > MAX_BULLET_CHARACTERS:
            rule = f"{len(item)} characters, most {MAX_BULLET_CHARACTERS}"
            found.append(Finding(path, line, rule, shown))
        if not item.startswith(tuple(f"{change}: " for change in CHANGE_TYPES)):
            found.append(Finding(path, line, f"opens with none of {CHANGE_TYPES}", shown))
    return found


def check_name(path: str, line: int, kind: str, name: str) -> list[Finding]:
    """Return a finding for each part of an identifier that is a retired term."""
    # `wall_s` is a unit: seconds of wall-clock time.
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name.removesuffix("wall_s"))
    retired = [part for part in parts if part.lower() in RETIRED_NAME_PARTS]
    return [Finding(path, line, f"retired {part!r} in a {kind} name", name) for part in retired]


def _plain(text: str) -> str:
    """Replace inline code by one word and links by their text; keep no markup."""
    text = re.sub(r"(`+)(.+?)\1", CODE, text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"<?https?://\S+", CODE, text)
    text = re.sub(r"<!--.*?-->|</?[a-z][^>]*>", " ", text)
    return text.replace("**", "")


def _split(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    for match in _END.finditer(text):
        last = text[start : match.start()].rsplit(None, 1)[-1:]
        if last and last[0].lstrip("(").lower() in ABBREVIATIONS:
            continue
        yield start, text[start : match.end()].strip()
        start = match.end()
    if text[start:].strip():
        yield start, text[start:].strip()


def _line_at(starts: list[tuple[int, int]], offset: int) -> int:
    """Return the line of an offset; inline code that was replaced moves it by little."""
    return max((number for start, number in starts if start <= offset), default=starts[0][1])


def _blocks(text: str) -> Iterator[_Block]:
    """Yield paragraphs, list items and headings of Markdown or of a docstring."""
    block: list[tuple[int, str]] = []
    for number, kind, line in _lines(text):
        if kind != "text" and block:
            yield _Block(tuple(block))
            block = []
        if kind == "heading":
            yield _Block(((number, line),), heading=True)
        elif kind != "gap":
            block.append((number, line))
    if block:
        yield _Block(tuple(block))


def _lines(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield each line's number, kind (`text`, `item`, `heading` or `gap`) and text."""
    section, kind = False, "gap"
    for number, line in _outside_fences(text):
        if _SECTION.match(line):
            section, kind = True, "gap"
        elif _GAP.match(line) or (not section and kind == "gap" and _CODE_LINE.match(line)):
            kind = "gap"
        elif line.startswith("#"):
            kind = "heading"
        elif _ITEM.match(line) or (section and _ENTRY.match(line)):
            kind = "item"
        else:
            kind = "text"
        yield number, kind, _without_marker(line)


def _outside_fences(text: str) -> Iterator[tuple[int, str]]:
    """Yield numbered lines; those of a fenced block are empty."""
    fence = ""
    for number, line in enumerate(text.splitlines(), start=1):
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence):
            fence = ""
        elif not fence:
            yield number, line
            continue
        yield number, ""


def _without_marker(line: str) -> str:
    match = _ITEM.match(line)
    return match[1] if match else re.sub(r"^\s*(?:>|#+ )\s?", "", line)
