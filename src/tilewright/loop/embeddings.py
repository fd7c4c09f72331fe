"""A deterministic embedding of code: features of its tokens and its syntax tree, without a model.

Equal code has equal vectors on every machine. Comments, blanks and the names of a program's own
variables change nothing. Vectors of a model server are better at what code means; the setting
`model.embeddings` takes one.
"""

from __future__ import annotations

import ast
import hashlib
import io
import keyword
import math
import re
import tokenize
from collections import Counter
from collections.abc import Iterator

from tilewright.languages.syntax import parse_tree

DIMENSIONS = 64
"""Length of a vector: 64 numbers compare with 5,000 others in about 5 ms, and hashed features of
two programs seldom cancel."""
_C_TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\])*\"|[A-Za-z_]\w*|\d[\w.]*|[-+*/%&|^~<>=!]+|\S", re.DOTALL
)
_LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def embed(code: str) -> tuple[float, ...]:
    """Return a vector of `DIMENSIONS` numbers with the Euclidean length 1; zeros for empty code.

    Each feature (one, two or three tokens in a row, or a node of the tree with its parent) counts
    with `log(1 + occurrences)`. A signed hash adds it to one place of the vector. This keeps inner
    products in the mean (Weinberger et al. 2009, "Feature Hashing for Large Scale Multitask
    Learning", section 2).
    """
    vector = [0.0] * DIMENSIONS
    for feature, count in sorted(Counter(_features(code)).items()):
        digest = hashlib.blake2b(feature.encode("utf-8", "replace"), digest_size=8).digest()
        place = int.from_bytes(digest[:4], "big") % DIMENSIONS
        sign = 1.0 if digest[4] & 1 else -1.0
        vector[place] += sign * math.log1p(count)
    length = math.sqrt(math.fsum(value * value for value in vector))
    return tuple(value / length for value in vector) if length else tuple(vector)


def _features(code: str) -> Iterator[str]:
    tree = _tree(code)
    tokens = _c_tokens(code) if tree is None else _python_tokens(code)
    for length in (1, 2, 3):
        for start in range(len(tokens) - length + 1):
            yield "token " + " ".join(tokens[start : start + length])
    for node in ast.walk(tree) if tree is not None else ():
        for child in ast.iter_child_nodes(node):
            yield f"tree {type(node).__name__} {type(child).__name__}"


def _tree(code: str) -> ast.Module | None:
    try:
        return parse_tree(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # C++ or CUDA, or no code at all.
        return None


def _python_tokens(code: str) -> list[str]:
    """Return the tokens of Python code; names are replaced by their order of appearance."""
    found = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(code).readline):
            if token.type not in _LAYOUT:
                found.append((token.type == tokenize.NAME, token.string.strip() or "block"))
    except (tokenize.TokenError, SyntaxError):
        return _c_tokens(code)
    return _renamed(found, _assigned(code))


def _assigned(code: str) -> set[str]:
    """Return the names that Python code itself binds: variables, functions, arguments."""
    tree, names = _tree(code), set[str]()
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
    return names


def _renamed(tokens: list[tuple[bool, str]], own: set[str]) -> list[str]:
    order: dict[str, str] = {}
    result = []
    for is_name, text in tokens:
        if is_name and text in own and not keyword.iskeyword(text):
            text = order.setdefault(text, f"name{len(order)}")
        result.append(text)
    return result


def _c_tokens(code: str) -> list[str]:
    """Return the tokens of C++ or CUDA code without its comments."""
    found = (match.group() for match in _C_TOKEN.finditer(code))
    return [text for text in found if not text.startswith(("//", "/*"))]
