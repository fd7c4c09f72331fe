"""Equal and nearly equal programs: canonical text, and sketches of it.

Canonical text is `ast.unparse` of the syntax tree without docstrings, or else the lines without
trailing blanks and empty lines.

Programs are nearly equal if the Jaccard similarity of their sets of five-token shingles reaches a
threshold. It is estimated from the 64 lowest hashes of each set (bottom-k sketches; Broder 1997,
Cohen and Kaplan 2007). Three min-hashes find the candidates for a comparison, so a pair at the
threshold is missed with probability (1 - threshold)^3.
"""

from __future__ import annotations

import ast
import heapq
import re
import zlib
from array import array
from collections.abc import Iterable
from functools import lru_cache

from tilewright.languages.syntax import parse_tree
from tilewright.records.base import digest_text

MIN_SIMILARITY = 0.85
"""Lowest estimated similarity of nearly equal programs."""
SHINGLE_TOKENS, SKETCH_HASHES = 5, 64
SALTS = (0x9E3779B1, 0x85EBCA6B, 0xC2B2AE35)
"""Odd factors of the three min-hashes: each orders the hashes modulo 2^32 differently."""
TOKEN = re.compile(r"\w+|[^\w\s]")


@lru_cache(64)
def canonical(text: str) -> str:
    """Return the canonical text of a program, or of any other text."""
    try:
        return ast.unparse(_without_texts(parse_tree(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        plain = "\n".join(line.rstrip() for line in text.splitlines() if line.strip())
        # The ends of the lines may have been the only obstacle.
        return plain if plain == text else canonical(plain)


def _without_texts(tree: ast.Module) -> ast.Module:
    """Remove docstrings and other bare strings from a tree."""
    # Visits statements only: they contain all statements, and expressions are most of a tree.
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(node, name, None)
            if isinstance(inner, list):
                kept = [item for item in inner if not _is_text(item)]
                if name == "body" and not kept:
                    kept = [ast.Pass()]
                setattr(node, name, kept)
                waiting += kept
    return tree


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(getattr(node.value, "value", None), str)


def sketch(text: str) -> array[int]:
    """Return the 64 lowest hashes of a text's shingles, sorted, 32 bits each."""
    words = TOKEN.findall(text)
    hashes = {
        zlib.crc32(" ".join(words[place : place + SHINGLE_TOKENS]).encode("utf-8", "replace"))
        for place in range(max(len(words) - SHINGLE_TOKENS + 1, 1))
    }
    return array("I", heapq.nsmallest(SKETCH_HASHES, hashes))


def similarity(one: Iterable[int], other: Iterable[int]) -> float:
    """Return the estimated Jaccard similarity of the sets behind two sketches, 0 to 1."""
    mine, theirs = set(one), set(other)
    union = heapq.nsmallest(SKETCH_HASHES, mine | theirs)
    return sum(item in mine and item in theirs for item in union) / len(union) if union else 1.0


class SeenPrograms:
    """Programs of earlier rows, by the problem that they answer. Lifetime: one export.

    `near` is the lowest similarity of programs that count as the same; `None`: only equal ones do.
    """

    def __init__(self, near: float | None = None) -> None:
        self.equal = 0
        """Number of programs that equal an earlier one."""
        self.alike = 0
        """Number of other programs that nearly equal an earlier one."""
        self._near = near
        self._digests: set[bytes] = set()
        self._holders: dict[int, array[int]] = {}
        """The last sketch with each min-hash."""

    def is_new(self, problem: str, program: str) -> bool:
        """Record a program; tell whether no earlier one of its problem counts as the same."""
        text = canonical(program)
        digest = bytes.fromhex(digest_text(f"{problem}\n{text}"))[:16]
        if digest in self._digests:
            self.equal += 1
            return False
        self._digests.add(digest)
        if self._near is None:
            return True
        made = sketch(text)
        keys = [
            hash((problem, salt, min((item * salt) & 0xFFFFFFFF for item in made)))
            for salt in SALTS
        ]
        known = [self._holders[key] for key in keys if key in self._holders]
        if any(similarity(made, other) >= self._near for other in known):
            self.alike += 1
            return False
        self._holders |= dict.fromkeys(keys, made)
        return True
