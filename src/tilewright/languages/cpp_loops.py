"""Loop nests and kernels in C++ and CUDA source, from its tokens, and which of them feed which.

Repetitions in the patterns have limits, so that the time grows in proportion to the length of
hostile text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

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


MAX_LOOPS = 500
"""Most loops of a file that are examined: each takes time in proportion to its length."""


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

    Those are the line of the loop and the line before it, where a pragma may stand.
    """
    code = code_only(text)
    loops = list(_LOOP.finditer(code))[:MAX_LOOPS]
    inner = [
        loop
        for loop, following in zip_longest(loops, loops[1:])
        if following is None or following.start() >= _loop_end(code, loop)
    ]
    lines = [code.count("\n", 0, loop.start()) + 1 for loop in inner]
    pragmas = {line - 1: line for line in lines if _is_pragma(text, line - 1)}
    return pragmas | {line: line for line in lines}


def _is_pragma(text: str, line: int) -> bool:
    return line > 0 and text.splitlines()[line - 1].lstrip().startswith("#pragma")


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
