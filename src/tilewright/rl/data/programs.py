"""When two programs are the same, or nearly: canonical text, and sketches of it.

Canonical text is `ast.unparse` of the syntax tree without docstrings, so without comments and
layout; names stay. What is no Python is its lines without trailing blanks and empty lines.

Nearly the same: the Jaccard similarity of their sets of five-token shingles, estimated from the 64
least hashes of each (bottom-k sketches; Broder 1997, Cohen and Kaplan 2007), is at least the
threshold. Pairs are found by three min-hashes, so a pair at the threshold is missed with chance
(1 - threshold)^3.
"""

from __future__ import annotations

import ast
import heapq
import re
import zlib
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from tilewright.languages.syntax import parse_tree
from tilewright.records.base import digest_text

__all__ = ["SAME", "Seen", "canonical", "similarity", "sketch"]

SAME = 0.85
"""From which estimated similarity on programs count as nearly the same."""
SHINGLE, KEPT = 5, 64
SALTS = (0x9E3779B1, 0x85EBCA6B, 0xC2B2AE35)
"""Odd numbers; times a hash modulo 2^32 each gives another order of hashes."""
_TOKEN = re.compile(r"\w+|[^\w\s]")


@lru_cache(64)
def canonical(text: str) -> str:
    """Return a program's canonical text. Any text is accepted."""
    try:
        return ast.unparse(_bare(parse_tree(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        plain = "\n".join(line.rstrip() for line in text.splitlines() if line.strip())
        # What was in the way may have been at the end of a line.
        return plain if plain == text else canonical(plain)


def _bare(tree: ast.Module) -> ast.Module:
    """Take docstrings and other bare strings out of a tree."""
    # Statements stand in statements alone: expressions, which are most of a tree, are not visited.
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(node, name, None)
            if not isinstance(inner, list):
                continue
            kept = [item for item in inner if not _is_text(item)]
            if name == "body" and not kept:
                kept = [ast.Pass()]
            setattr(node, name, kept)
            waiting += kept
    return tree


def _is_text(node: ast.AST) -> bool:
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
        return False
    return isinstance(node.value.value, str)


def sketch(text: str) -> array[int]:
    """Return the least hashes of a text's shingles, sorted, 32 bits each, at most 64."""
    return array("I", sorted(heapq.nsmallest(KEPT, set(_hashes(text)))))


def _hashes(text: str) -> Iterator[int]:
    words = _TOKEN.findall(text)
    for place in range(max(len(words) - SHINGLE + 1, 1)):
        yield zlib.crc32(" ".join(words[place : place + SHINGLE]).encode("utf-8", "replace"))


def similarity(one: Iterable[int], other: Iterable[int]) -> float:
    """Return the estimated Jaccard similarity of the sets behind two sketches, 0 to 1."""
    mine, theirs = set(one), set(other)
    union = heapq.nsmallest(KEPT, mine | theirs)
    return sum(item in mine and item in theirs for item in union) / len(union) if union else 1.0


@dataclass
class Seen:
    """Programs that were met, by the problem they answer. Lifetime: one export.

    About 0.1 kB of memory for each distinct program, 1 kB where near ones count too.
    """

    near: float | None = None
    """From which similarity on two count as one; `None`: only where they are equal."""
    equal: int = 0
    """How many were met before, word for word."""
    alike: int = 0
    """How many others were nearly met before."""
    _digests: set[bytes] = field(default_factory=set)
    _sketches: list[array[int]] = field(default_factory=list)
    _holders: dict[int, int] = field(default_factory=dict)

    def is_new(self, problem: str, program: str) -> bool:
        """Take a program in; tell whether it is a new one.

        Args:
            problem: names the problem; programs of different problems are never the same.
            program: its text.
        """
        text = canonical(program)
        digest = bytes.fromhex(digest_text(f"{problem}\n{text}"))[:16]
        if digest in self._digests:
            self.equal += 1
            return False
        self._digests.add(digest)
        if self.near is None:
            return True
        made = sketch(text)
        keys = [_key(problem, made, salt) for salt in SALTS]
        known = {self._holders[key] for key in keys if key in self._holders}
        if any(similarity(made, self._sketches[place]) >= self.near for place in known):
            self.alike += 1
            return False
        self._sketches.append(made)
        for key in keys:
            self._holders[key] = len(self._sketches) - 1
        return True


def _key(problem: str, made: array[int], salt: int) -> int:
    least = min(((item * salt) & 0xFFFFFFFF) for item in made)
    return hash((problem, salt, least))
