"""Loop nests and kernels in C++ and CUDA source, from its tokens, and which of them feed which.

Repetitions in the patterns have limits, so that the time grows in proportion to the length of
hostile text.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tilewright.languages.cpp_lexer import code_only

_FUNCTION = re.compile(
    r"\b([A-Za-z_]\w{0,200})\s{0,20}\(([^;{}()]{0,2000})\)\s{0,20}"
    r"(?:const\s{1,20})?(?:noexcept\s{0,20})?\{"
)
_LOOP = re.compile(r"\b(?:for|while)\s{0,20}\(")
_VARIABLE = re.compile(r"for\s{0,20}\((?:\s{0,20}[\w:]{1,80}){0,4}?\s{1,20}(\w{1,80})\s{0,20}=")
_WRITTEN = re.compile(
    r"\b(\w{1,80})\s{0,20}(?:\[[^\[\];=]{0,200}\]\s{0,20}){1,8}(?:[-+*/|&^]|<<|>>)?=(?!=)"
)
_INDEXED = re.compile(r"\b(\w{1,80})\s{0,20}\[")
_LAUNCH = re.compile(r"\b(\w{1,200})\s{0,20}<<<[^;]{0,500}?>>>\s{0,20}\(")
_KEYWORDS = frozenset({"if", "for", "while", "switch", "return", "sizeof", "catch"})
_HEAD_CHARS = 200
"""Characters before a function's name in which its qualifiers lie."""


MAX_CHARS = 1 << 18
"""Characters of a file in which loops are looked for."""
_BRACKET, _SPACE = re.compile(r"[(){}]"), re.compile(r"\s*")
_OPENING = {")": "(", "}": "{"}


@dataclass(frozen=True)
class LoopRegion:
    """An outermost loop nest of a function, or a `__global__` function."""

    name: str
    axes: int
    """Its loops; the grid of a kernel counts as one."""
    reads: tuple[str, ...] = ()
    """Regions that wrote last to the arrays that it reads."""


@dataclass(frozen=True)
class _Function:
    name: str
    head: str
    arguments: str
    body: str


def loop_regions(text: str) -> tuple[LoopRegion, ...]:
    """Return the regions of a source in their order.

    The only nest of a function is named after the function. Several are named after the variable of
    their outer loop too, and after their number where this one repeats.
    """
    functions = list(_functions(code_only(text)))
    kernels = {item.name: item for item in functions if "__global__" in item.head}
    feeds = {name: set[str]() for name in kernels}
    regions: list[LoopRegion] = []
    for item in functions:
        if item.name in kernels:
            continue
        regions += _named_nests(item)
        for before, after in _launch_edges(item.body, kernels):
            feeds[after].add(before)
    found = [
        LoopRegion(
            kernel_name(name),
            1 + len(_LOOP.findall(item.body)),
            tuple(kernel_name(each) for each in kernels if each in feeds[name]),
        )
        for name, item in kernels.items()
    ]
    return (*found, *regions)


def innermost_loop_lines(text: str) -> dict[int, int]:
    """Return the line of each loop without another one in it, by the lines that a compiler names.

    Those are the line of the loop and the line before it, where a pragma may stand. Its time grows
    in proportion to the length of the text, of which at most `MAX_CHARS` are read.
    """
    code, lines = code_only(text[:MAX_CHARS]), text[:MAX_CHARS].split("\n")
    loops, closing = list(_LOOP.finditer(code)), _closing_brackets(code)
    starts, ends, inner = {loop.start() for loop in loops}, dict[int, int](), list[int]()
    following = len(code)
    for loop in reversed(loops):
        body = _skip_space(code, closing.get(loop.end() - 1, len(code)))
        if body in starts:
            end = ends[body]
        elif code[body : body + 1] == "{":
            end = closing.get(body, len(code))
        else:
            end = code.find(";", body) % (len(code) + 1)
        ends[loop.start()] = end
        if following >= end:
            inner.append(loop.start())
        following = loop.start()
    breaks = [place for place, mark in enumerate(code) if mark == "\n"]
    numbers = [bisect_left(breaks, start) + 1 for start in inner]
    pragmas = {n - 1: n for n in numbers if n > 1 and lines[n - 2].lstrip().startswith("#pragma")}
    return pragmas | {number: number for number in numbers}


def _closing_brackets(code: str) -> dict[int, int]:
    """Return the place after the bracket that closes each round or curly one, by its place."""
    found, open_places = dict[int, int](), {"(": list[int](), "{": list[int]()}
    for match in _BRACKET.finditer(code):
        if (kind := _OPENING.get(match[0])) is None:
            open_places[match[0]].append(match.start())
        elif open_places[kind]:
            found[open_places[kind].pop()] = match.end()
    return found


def _skip_space(code: str, place: int) -> int:
    match = _SPACE.match(code, place)
    return match.end() if match else place


def kernel_name(name: str) -> str:
    """Return how a kernel is called as a region."""
    return f"{name.strip('_').removesuffix('_kernel').removesuffix('kernel') or name} kernel"


def _functions(code: str) -> Iterator[_Function]:
    place = 0
    while match := _FUNCTION.search(code, place):
        place = match.end()
        if match[1] in _KEYWORDS:
            continue
        before = code[max(match.start() - _HEAD_CHARS, 0) : match.start()]
        head = re.split(r"[;{}]", before)[-1]
        place = _closed(code, match.end() - 1, "{", "}")
        yield _Function(match[1], head, match[2], code[match.end() : place - 1])


def _named_nests(function: _Function) -> list[LoopRegion]:
    nests = list(_nests(function.body))
    seen, last_writer = Counter[str](), dict[str, str]()
    found = []
    for nest in nests:
        name = f"{function.name} loop"
        if len(nests) > 1:
            variable = _VARIABLE.match(nest)
            name = f"{name} over {variable[1]}" if variable else name
            seen[name] += 1
            name = name if seen[name] == 1 else f"{name} no. {seen[name]}"
        used = dict.fromkeys(_INDEXED.findall(nest))
        reads = dict.fromkeys(last_writer[array] for array in used if array in last_writer)
        found.append(LoopRegion(name, len(_LOOP.findall(nest)), tuple(reads)))
        last_writer |= dict.fromkeys(_WRITTEN.findall(nest), name)
    return found


def _nests(body: str) -> Iterator[str]:
    """Yield the outermost loops of a body, each with its head."""
    place = 0
    while match := _LOOP.search(body, place):
        place = _loop_end(body, match)
        yield body[match.start() : place]


def _loop_end(body: str, loop: re.Match[str]) -> int:
    """Return the end of a loop, whose statement may be a block, another loop or one line."""
    inner: re.Match[str] | None = loop
    end = loop.end()
    while inner is not None:
        head_end = _closed(body, inner.end() - 1, "(", ")")
        end = head_end + len(body[head_end:]) - len(body[head_end:].lstrip())
        inner = _LOOP.match(body, end)
    if body[end : end + 1] == "{":
        return _closed(body, end, "{", "}")
    last = body.find(";", end)
    return len(body) if last < 0 else last + 1


def _launch_edges(body: str, kernels: dict[str, _Function]) -> Iterator[tuple[str, str]]:
    """Yield pairs of kernels of which the second reads an argument that the first wrote last."""
    last_writer: dict[str, str] = {}
    for match in _LAUNCH.finditer(body):
        if match[1] not in kernels:
            continue
        text = body[match.end() : _closed(body, match.end() - 1, "(", ")") - 1]
        given = [re.split(r"\W", part.strip())[0] for part in _parts(text)]
        parameters = _parts(kernels[match[1]].arguments)
        pointers = [
            (name, part) for name, part in zip(given, parameters, strict=False) if "*" in part
        ]
        for name, _ in pointers:
            if name in last_writer and last_writer[name] != match[1]:
                yield last_writer[name], match[1]
        # A kernel may write through a pointer to data that is not constant.
        last_writer |= {name: match[1] for name, part in pointers if "const" not in part}


def _parts(text: str) -> Sequence[str]:
    """Return what commas separate, outside of brackets."""
    flat = re.sub(r"<[^<>;]{0,200}>|\([^()]{0,500}\)", "", text)
    return flat.split(",")


def _closed(code: str, start: int, opening: str, closing: str) -> int:
    """Return the place after the bracket that closes the one at `start`."""
    depth = 0
    for place in range(start, len(code)):
        if code[place] == opening:
            depth += 1
        elif code[place] == closing:
            depth -= 1
            if depth == 0:
                return place + 1
    return len(code)
