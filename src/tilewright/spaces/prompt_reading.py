"""Reading prompts: their programs with a speed, their requests and notes, from the text alone.

The reader is lenient. A fenced block counts if it is a program of the space. Its speed is in the
line before it, or in the text after it. The space is that whose reference the prompt shows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from tilewright.spaces import SPACES
from tilewright.spaces.space import Knobs, Space, intended_knobs, knobs_of

_BLOCK = re.compile(r"^(`{3,})[\w+]*[ \t]*\n(.*?)^\1[ \t]*$", re.DOTALL | re.MULTILINE)
_RATIO = re.compile(r"([\d.]+)x")
_INTERVAL = re.compile(r"\[([\d.]+), ([\d.]+)\]")
_SPEED_LINE = re.compile(r"^.*(?:speed|correct, and|not faster).*$", re.IGNORECASE | re.MULTILINE)
_NO_SPEED = re.compile(r"Verdict:|Not judged|speed was not measured")
_JSON_SPEED = re.compile(r'"speedup": ([\d.]+)')
_REQUEST_END = re.compile(r".*(?:fenced (?:code )?block\.|as much as you like\.)", re.DOTALL)
_CHANGE = re.compile(r"^# The change\n+(.*?)(?=\n\nMake this one change|\n# |\Z)", re.DOTALL | re.M)
_NOTES = re.compile(r"^# Notes that may help\n+(.*?)(?=^# |\Z)", re.DOTALL | re.MULTILINE)
_SUMMARY = re.compile(r"^# The summary so far\n+(.*?)(?=\n\nSay what|^# |\Z)", re.DOTALL | re.M)
_TRIED = re.compile(r"^Changes to the current program that were tried.*\n((?:- .*\n?)*)", re.M)
_LISTED = re.compile(
    r"^(?:- .*`.*|Changes (?:that led to|to) the current program.*)$", re.MULTILINE
)
_QUOTED = re.compile(r"`([^`]+)`")
_CHOICES = re.compile(r"Choose one of these\..*\n+((?:\d+\. .*(?:\n|\Z))+)")
_DRAWN = re.compile(r"Write program number (\d+) of the space")
CURRENT = "# The current program"


class PromptMessage(Protocol):
    """A message of a prompt."""

    @property
    def role(self) -> str: ...

    @property
    def text(self) -> str: ...


@dataclass(frozen=True)
class ShownProgram:
    """A program in a prompt."""

    knobs: Knobs
    speedup: float | None
    """`None` if the prompt states none: it was not correct, or nobody measured it."""


@dataclass(frozen=True)
class Prompt:
    """The content of a prompt, as far as a proposer uses it."""

    space: Space
    programs: tuple[ShownProgram, ...] = ()
    """In the order of the prompt; only those that belong to the space."""
    parent: Knobs | None = None
    """The program to improve, a spoiled one too; `None` if the prompt shows none."""
    parent_text: str = ""
    """The source of the parent as the prompt shows it."""
    action: str = ""
    """The one change that the prompt asks for, or its closing instruction."""
    is_single: bool = False
    """Whether the prompt asks for one change and no other."""
    notes: str = ""
    """Documents and a summary."""
    tried: tuple[frozenset[str], ...] = ()
    """The quoted lines of each change that was tried on the parent."""
    choices: int = 0
    """Number of choices, of which the prompt asks for one."""
    wants_patch: bool = False
    wants_summary: bool = False
    number: int | None = None
    """Number of the program that the prompt asks for, modulo their number."""


@dataclass(frozen=True)
class _Block:
    text: str
    before: str
    """The text between the block before it and this one."""
    after: str
    """The text up to the next block."""
    by_assistant: bool


def read_prompt(messages: Sequence[PromptMessage]) -> Prompt | None:
    """Return what a prompt shows; `None` if it belongs to no space."""
    blocks = list(_blocks(messages))
    space = _space_of(blocks)
    if space is None:
        return None
    shown = [(block, intended_knobs(space, block.text)) for block in blocks]
    known = [(block, knobs) for block, knobs in shown if knobs is not None]
    programs = tuple(ShownProgram(knobs, _speed(block)) for block, knobs in known)
    parent = _parent(known, programs)
    text = "\n\n".join(item.text for item in messages if item.role != "assistant")
    plain = _BLOCK.sub("", text)
    change = _CHANGE.search(plain)
    last = messages[-1].text
    tail = last[max((found.end() for found in _BLOCK.finditer(last)), default=0) :]
    closing = _NOTES.sub("", _REQUEST_END.sub("", tail, count=1))
    choices = _CHOICES.search(last)
    return Prompt(
        space=space,
        programs=programs,
        parent=known[parent][1] if parent is not None else None,
        parent_text=known[parent][0].text if parent is not None else "",
        action=(change[1] if change else _LISTED.sub("", closing)).strip(),
        is_single=change is not None,
        notes="\n".join(found[1] for part in (_NOTES, _SUMMARY) for found in part.finditer(plain)),
        tried=_tried(text),
        choices=len(choices[1].strip().splitlines()) if choices else 0,
        wants_patch="<<<<<<< SEARCH" in last,
        wants_summary="<summary>" in last,
        number=int(found[1]) if (found := _DRAWN.search(last)) else None,
    )


def _blocks(messages: Sequence[PromptMessage]) -> Iterator[_Block]:
    for place, message in enumerate(messages):
        found = list(_BLOCK.finditer(message.text))
        for number, match in enumerate(found):
            begin = found[number - 1].end() if number else 0
            end = found[number + 1].start() if number + 1 < len(found) else len(message.text)
            after = message.text[match.end() : end]
            by_assistant = message.role == "assistant"
            if by_assistant and place + 1 < len(messages):
                after = messages[place + 1].text
            yield _Block(match[2], message.text[begin : match.start()], after, by_assistant)


def _space_of(blocks: Sequence[_Block]) -> Space | None:
    """Return the space whose reference is shown, or to which a shown program belongs."""
    texts = [block.text for block in blocks]
    for space in SPACES.values():
        reference = space.problem_path.read_text(encoding="utf-8").strip()
        if any(text.strip() == reference for text in texts):
            return space
    for space in SPACES.values():
        if any(knobs_of(space, text) is not None for text in texts):
            return space
    return None


def _speed(block: _Block) -> float | None:
    """Return the speed of a block: of the line before it, else of the text after it."""
    lines = block.before.rstrip().splitlines()
    own = lines[-1] if lines else ""
    if not block.by_assistant and _NO_SPEED.search(own):
        return None
    if not block.by_assistant and _SPEED_LINE.match(own):
        return speed_in(own)
    return speed_in(block.after)


def speed_in(text: str) -> float | None:
    """Return the first speed-up that a text states, or the middle of its interval."""
    for line in _SPEED_LINE.findall(text):
        if ratio := _RATIO.search(line):
            return float(ratio[1])
        if interval := _INTERVAL.search(line):
            return math.sqrt(float(interval[1]) * float(interval[2]))
    found = _JSON_SPEED.search(text)
    return (float(found[1]) or None) if found else None


def _parent(known: Sequence[tuple[_Block, Knobs]], programs: Sequence[ShownProgram]) -> int | None:
    """Return the place of the current program; else of the last answer; else of the fastest."""
    places = range(len(known))
    current = [place for place in places if CURRENT in known[place][0].before]
    answers = [place for place in places if known[place][0].by_assistant]
    if current or answers:
        return (current or answers)[-1]
    # The last one of equal speed: prompts show the fastest program last.
    return max(places, key=lambda place: (programs[place].speedup or 0.0, place), default=None)


def _tried(text: str) -> tuple[frozenset[str], ...]:
    lines = [line for found in _TRIED.finditer(text) for line in found[1].splitlines()]
    return tuple(frozenset(_QUOTED.findall(line)) for line in lines if "`" in line)
