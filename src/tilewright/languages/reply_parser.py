"""From a model's reply to source files, by fixed rules that accept any text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import NamedTuple

from pydantic import ValidationError

from tilewright.languages.base import SOURCE_SUFFIXES
from tilewright.languages.cpp_lexer import looks_native
from tilewright.languages.detect import exports, main_first
from tilewright.languages.syntax import is_python, parse_modules
from tilewright.records import SourceFile
from tilewright.records.request import collide

_SUFFIX_OF_TAG = {
    **dict.fromkeys(("python", "python3", "py", "py3", "triton", "pytorch"), ".py"),
    **dict.fromkeys(("cpp", "c++", "cc", "cxx", "c"), ".cpp"),
    **dict.fromkeys(("cuda", "cu"), ".cu"),
}
_STEM = "candidate"
PYTHON_FILE = f"{_STEM}.py"
"""Path of a Python program to which the reply gives no name."""

_THINKING = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)
_FENCE = re.compile(r"^([ \t]*)(`{3,}|~{3,})(.*)$")
_FILE_COMMENT = re.compile(r"^\s*(?:#|//|/\*)\s*file(?:name)?:\s*(\S+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """The files of a reply, the one to load first; or none, with the reason."""

    files: tuple[SourceFile, ...]
    """Empty where the reply has no usable code."""
    reason: str
    """The rule that chose the files, or one line on what is missing."""


class _Block(NamedTuple):
    text: str
    tag: str
    path: str | None
    complete: bool


def parse_reply(text: str, entry: str) -> ParsedReply:
    """Return the code of a reply that defines `entry`, or the reason why there is none.

    1. Text between `<think>` and `</think>` does not count. Without the opening tag, all text up to
       `</think>` does not count. Without the closing tag, all text after `<think>` does not count.
    2. Fences are those of CommonMark: three or more backticks or tildes, closed by at least as
       many. A block that the reply's end cuts off is incomplete.
    3. The tag of a block gives its language (python, triton, cpp, cuda and their short forms). A
       block with no tag or another one is Python. It is C++ or CUDA if it is no Python and has
       `#include`, `extern "C"`, `__global__` or `torch::`.
    4. A block defines `entry` if its syntax tree binds that name at top level, or if C++ exports
       it. Text that does not parse defines it if a line starts with `class` or `def` and the name.
    5. Of the blocks that define `entry`, complete ones come before incomplete ones. Then blocks
       that parse come before others, and tagged ones before untagged ones. The last one wins.
    6. The file name of a block is in its info string (`python model.py`, `cpp:kernel.cpp`,
       `cpp title="kernel.cpp"`), or in a comment `# file: kernel.cpp` (or `//`) on its first line.
       If the chosen block has a name, all named blocks belong to it. Otherwise those belong to it
       that it mentions by name or imports. Of two blocks with one name the last one counts, the
       chosen block before any other.
    7. Without any block, the whole reply counts if it is Python and defines `entry`.
    8. A single block counts although it does not define `entry`. Its evaluation tells what it lacks
       better than this function can.
    """
    # Lone surrogates cannot be written to disk.
    answer = spoken(text.encode("utf-8", "replace").decode("utf-8").replace("\r\n", "\n"))
    blocks = list(_blocks(answer))
    if not blocks:
        file = SourceFile(path=PYTHON_FILE, text=answer)
        if exports(file, entry):
            return ParsedReply((file,), f"the whole reply is Python that defines {entry}")
        missing = f"there is no code block, and the reply as a whole defines no {entry}"
        return ParsedReply((), missing)
    ranks = [(_rank(block, entry), number) for number, block in enumerate(blocks)]
    rank, number = max(ranks)
    if not rank and len(blocks) > 1:
        return ParsedReply((), f"{len(blocks)} code blocks were found, none defines {entry}")
    if not rank:
        return ParsedReply((_file(blocks[0]),), f"the only block, which does not define {entry}")
    chosen = blocks[number]
    files: list[SourceFile] = []
    for file in _together(chosen, blocks):
        # No file may repeat the path of another, or use it as a folder.
        if not any(collide(file.path, other.path) for other in files):
            files.append(file)
    ordered = tuple(files) if is_python(files[0]) else main_first(files, entry)
    cut = "" if chosen.complete else " and is cut off"
    return ParsedReply(ordered, f"block {number + 1} of {len(blocks)} defines {entry}{cut}")


def code_blocks(text: str) -> list[str]:
    """Return the texts of all fenced blocks of a reply, in order (rules 1 and 2)."""
    return [block.text for block in _blocks(spoken(text.replace("\r\n", "\n")))]


def spoken(text: str) -> str:
    """Return a reply without its thinking (rule 1 of `parse_reply`)."""
    kept: list[str] = []
    start, inside = 0, False
    for tag in _THINKING.finditer(text):
        closing = tag[1] == "/"
        if closing and not inside:
            kept.clear()
        elif not inside:
            kept.append(text[start : tag.start()])
        inside, start = not closing, tag.end()
    return "".join(kept if inside else [*kept, text[start:]])


def _blocks(text: str) -> Iterator[_Block]:
    fence, indent, info = "", 0, ""
    lines: list[str] = []
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if not fence:
            if found and not (found[2][0] == "`" and "`" in found[3]):
                fence, indent, info = found[2], len(found[1]), found[3].strip()
                lines = []
        elif found and found[2].startswith(fence) and not found[3].strip():
            yield _block(lines, info, complete=True)
            fence = ""
        else:
            margin = len(line) - len(line.lstrip(" \t"))
            lines.append(line[min(indent, margin) :])
    if fence:
        yield _block(lines, info, complete=False)


def _block(lines: list[str], info: str, *, complete: bool) -> _Block:
    words = re.split(r"[\s,:={}\"'()]+", info.strip("{} \t."))
    tag = words[0].lower().lstrip(".") if words else ""
    named = words[0 if "." in tag else 1 :]
    comment = next((_FILE_COMMENT.match(line) for line in lines if line.strip()), None)
    if comment is not None:
        named.append(comment[1].removesuffix("*/"))
    usable = list(filter(_usable_path, named))
    path = usable[-1].removeprefix("./") if usable else None
    return _Block("\n".join(lines) + "\n", tag, path, complete)


def _usable_path(name: str) -> bool:
    path = name.removeprefix("./")
    if not path.endswith(SOURCE_SUFFIXES) or path in SOURCE_SUFFIXES or " " in path:
        return False
    with suppress(ValidationError):
        return bool(SourceFile(path=path, text=""))
    return False


def _file(block: _Block) -> SourceFile:
    if block.path is not None:
        return SourceFile(path=block.path, text=block.text)
    suffix = _SUFFIX_OF_TAG.get(block.tag)
    if suffix is None:
        python = SourceFile(path=PYTHON_FILE, text=block.text)
        if not looks_native(block.text) or parse_modules([python]):
            return python
        suffix = ".cu" if "__global__" in block.text else ".cpp"
    return SourceFile(path=_STEM + suffix, text=block.text)


def _rank(block: _Block, entry: str) -> tuple[bool, ...]:
    """Return the rank of a block that defines `entry`, by rule 5; empty if it does not."""
    file = _file(block)
    tagged = block.tag in _SUFFIX_OF_TAG or block.path is not None
    if exports(file, entry):
        return (block.complete, True, tagged)
    if not is_python(file) or parse_modules([file]):
        return ()
    pattern = rf"^(?:class|def|async\s+def)\s+{re.escape(entry)}\b"
    return (block.complete, False, tagged) if re.search(pattern, file.text, re.MULTILINE) else ()


def _together(chosen: _Block, blocks: Sequence[_Block]) -> tuple[SourceFile, ...]:
    """Return the file of `chosen` and those that belong to it, in the order of the reply."""
    main = _file(chosen)
    named = {block.path: _file(block) for block in blocks if block.path not in (None, main.path)}
    if chosen.path is not None:
        return (main, *named.values())
    files, waiting = [main], list(named.values())
    for file in files:  # grows during the loop: a mentioned file may mention more
        files += [each for each in waiting if _mentions(file.text, each.path)]
        waiting = [each for each in waiting if each not in files]
    return (main, *(each for each in named.values() if each in files))


def _mentions(text: str, path: str) -> bool:
    if PurePosixPath(path).name in text:
        return True
    stem = re.escape(PurePosixPath(path).stem)
    return path.endswith(".py") and re.search(rf"\b(?:import|from)\s+{stem}\b", text) is not None
