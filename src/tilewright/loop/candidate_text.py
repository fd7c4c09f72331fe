"""The code of an answer, and patches of SEARCH/REPLACE blocks on the code of another."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tilewright.languages.reply_parser import PYTHON_FILE, code_blocks, parse_reply, spoken
from tilewright.records import SourceFile
from tilewright.records.events import Ask, Turn

MAX_NAMED_CHARS = 80
"""Characters of a block's first line that a message quotes."""
_BLOCK = re.compile(
    r"^<{5,} ?SEARCH[ \t]*\n(.*?)^={5,}[ \t]*\n(.*?)^>{5,} ?REPLACE[ \t]*$",
    re.DOTALL | re.MULTILINE,
)


def code_of(turn: Turn) -> str:
    """Return the text of the candidate's main file; empty if the answer has none."""
    if turn.code or turn.reply is None or turn.refused:
        return turn.code
    return text_of(turn.reply.text)


def files_of(turn: Turn, entry: str) -> tuple[SourceFile, ...]:
    """Return the candidate's files, the main one first; none if the answer has no code."""
    if turn.files or turn.refused:
        return turn.files
    if turn.reply is not None and not is_patch(turn.ask):
        parsed = parse_reply(turn.reply.text, entry).files
        if parsed:
            return parsed
    code = code_of(turn)
    return (SourceFile(path=PYTHON_FILE, text=code),) if code else ()


def logged_files(files: tuple[SourceFile, ...]) -> tuple[SourceFile, ...]:
    """Return files for the log; none if the text of the main one says as much."""
    return () if [file.path for file in files] == [PYTHON_FILE] else files


def is_patch(ask: Ask) -> bool:
    """Tell whether the answer changes the code of the first parent."""
    return ask.form == "patch" and bool(ask.parents)


def text_of(reply: str) -> str:
    """Return the last code block of a reply, or the whole reply if it has none."""
    blocks = code_blocks(reply)
    return blocks[-1] if blocks else spoken(reply)


@dataclass(frozen=True)
class Patched:
    """The code after a patch, or the reason why there is none."""

    code: str = ""
    refused: str = ""


def patched(code: str, reply: str) -> Patched:
    """Apply the SEARCH/REPLACE blocks of a reply to code, in order.

    A block replaces the first place at which all its lines occur. It is refused if there is no such
    place; the reason names the block.
    """
    text = spoken(reply).replace("\r\n", "\n")
    blocks = list(_BLOCK.finditer(text))
    if not blocks:
        return Patched(refused="the reply has no SEARCH/REPLACE block")
    for number, block in enumerate(blocks, start=1):
        old, new = block[1], block[2]
        if not old.strip():
            return Patched(refused=f"block {number} of {len(blocks)} searches for nothing")
        place = _place(code, old)
        if place is None:
            first = old.strip().splitlines()[0].strip()[:MAX_NAMED_CHARS]
            return Patched(
                refused=f"block {number} of {len(blocks)} does not match the program: {first!r}"
            )
        code = code[: place[0]] + new + code[place[1] :]
    return Patched(code)


def _place(code: str, old: str) -> tuple[int, int] | None:
    """Return where whole lines of the code equal those of a block, but for spaces at their ends."""
    lines = [line.rstrip() for line in old.rstrip("\n").split("\n")]
    own = code.split("\n")
    for start in range(len(own) - len(lines) + 1):
        if [line.rstrip() for line in own[start : start + len(lines)]] == lines:
            first = sum(len(line) + 1 for line in own[:start])
            length = sum(len(line) + 1 for line in own[start : start + len(lines)])
            return first, min(first + length, len(code))
    return None
