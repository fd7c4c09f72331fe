"""Does a data set hold the problems of the benchmark that will score a model?

Three comparisons, each reported by its name:

* `reference`: the same program, except for comments, layout and names that the program defines.
* `shapes and operators`: the same shapes of inputs and numbers of the constructor, and the same
  torch operators in the same order, however the program writes them.
* `prompt`: the prompt or the problem contains 60 % of the own eight-token sequences of a reference
  of the benchmark. Few other problems of the benchmark contain an own sequence.
"""

from __future__ import annotations

import ast
import operator
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from tilewright.languages.syntax import Module, parse_module, parse_tree
from tilewright.languages.torch_use import torch_facts
from tilewright.records import Problem
from tilewright.records.base import digest_text
from tilewright.rl.data.programs import TOKEN, canonical

GRAM_TOKENS, MIN_OWN, MIN_SHARE = 8, 8, 0.6
"""Comparison `prompt`: tokens of a sequence, and fewest sequences of a compared reference.

The third value is the lowest share of matching sequences."""
MAX_SHARED = 2
"""Most problems of a benchmark that may contain an own sequence; 2 % of them in large ones."""
_MAKERS = {"rand", "randn", "randint", "ones", "zeros", "empty", "full", "arange", "randperm"}
_SHAPE_IS_LIST = {"randint", "full"}
"""Makers with other numbers besides the shape, which is a list or a tuple."""
_INPUTS = {"get_inputs", "get_init_inputs", "inputs"}
_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
}
SKELETON = """class Model(nn.Module):
    def __init__(self):
        super(Model, self).__init__()

    def forward(self, x):
        return x


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x
"""
"""Text that all modules share; a benchmark of one problem could not show it."""


How = Literal["reference", "shapes and operators", "prompt"]


@dataclass(frozen=True)
class Match:
    """A problem of the data that matches one of a benchmark."""

    problem: str
    benchmark: str
    how: How
    share: float
    """Matching share of the comparison, 0 to 1."""


class Benchmark:
    """The problems of benchmarks, prepared for comparisons. Lifetime: one export."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self._known: dict[tuple[How, object], str] = {}
        grams: dict[str, set[int]] = {}
        for problem in problems:
            for key in _exact(problem):
                self._known.setdefault(key, problem.id)
            grams[problem.id] = set(_grams(_computing(problem.source.text)))
        common = Counter(gram for found in grams.values() for gram in found)
        skeleton = set(_grams(_computing(SKELETON)))
        most = max(MAX_SHARED, len(grams) // 50)
        self._sizes: dict[str, int] = {}
        self._holders: dict[int, list[str]] = defaultdict(list)
        for name, found in grams.items():
            own = [gram for gram in found - skeleton if common[gram] <= most]
            self._sizes[name] = len(own)
            for gram in own if len(own) >= MIN_OWN else ():
                self._holders[gram].append(name)

    def matches(self, problem: Problem, prompt: str = "") -> list[Match]:
        """Return the matches of a problem, and of a prompt for it, with the benchmarks."""
        known = [(key[0], self._known[key]) for key in _exact(problem) if key in self._known]
        found = [Match(problem.id, name, how, 1.0) for how, name in known]
        # The benchmark's text has no comments; a prompt may have them, so both forms are compared.
        grams = {*_grams(canonical(problem.source.text)), *_grams(prompt)}
        counts = Counter(name for gram in grams for name in self._holders.get(gram, ()))
        shares = [(count / self._sizes[name], name) for name, count in counts.items()]
        share, name = max(shares, default=(0.0, ""))
        if share >= MIN_SHARE:
            found.append(Match(problem.id, name, "prompt", share))
        return found


def _exact(problem: Problem) -> Iterator[tuple[How, object]]:
    """Yield what must be equal in two problems, for each comparison that is exact."""
    yield "reference", reference_digest(problem.source.text)
    if work := shapes_and_operators(problem):
        yield "shapes and operators", work


def _computing(text: str) -> str:
    """Return the definitions that compute, in canonical text, without those that make inputs."""
    try:
        tree = parse_tree(canonical(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text
    return "\n".join(
        ast.unparse(node)
        for node in tree.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name not in _INPUTS
    )


def _grams(text: str) -> Iterator[int]:
    words = TOKEN.findall(text)
    for place in range(len(words) - GRAM_TOKENS + 1):
        yield hash(tuple(words[place : place + GRAM_TOKENS]))


@lru_cache(1024)
def reference_digest(text: str) -> str:
    """Return a digest of a program that comments, layout and its own names do not change."""
    plain = canonical(text)
    module = parse_module("reference.py", plain)
    if not isinstance(module, Module):
        return digest_text(plain)
    # A new tree, because other readers share the parsed module.
    tree, names = parse_tree(plain), dict[str, str]()
    # They are numbered by their first use. Attributes, keywords, constants and imports stay.
    bound = _bound(tree) - set(module.aliases) - {"Model", "reference", *_INPUTS}
    for node in ast.walk(tree):
        own = isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self"
        for part in ("id", "name", "arg", *(("attr",) if own else ())):
            name = getattr(node, part, None)
            if isinstance(name, str) and name in bound:
                setattr(node, part, names.setdefault(name, f"v{len(names)}"))
        # Annotations do not change the computation.
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.FunctionDef):
            node.returns = None
    return digest_text(ast.unparse(tree))


def _bound(tree: ast.Module) -> set[str]:
    """Return the names that a program defines."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                found.add(name)
            case ast.arg(arg=name):
                found.add(name)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) if name[:2] != "__":
                found.add(name)
    return found - {"self", "forward"}


def shapes_and_operators(problem: Problem) -> tuple[str, ...] | None:
    """Return the shapes of a problem's inputs, its constructor arguments, and its operators.

    It reads the source and runs nothing; `None`: the source shows no operator or no shape.
    """
    module = parse_module("reference.py", problem.source.text)
    if not isinstance(module, Module):
        return None
    # Outer nodes come before inner ones, which are computed first.
    found = enumerate(torch_facts(module))
    facts = [fact for _, fact in sorted(found, key=lambda item: (item[1].line, -item[0]))]
    called = {fact.name for fact in facts if fact.field == "torch_ops"}
    # A module counts where it is called, or where it is constructed if nothing calls it by name.
    operators = [f.name for f in facts if f.field == "torch_ops" or f.name not in called]
    if problem.kind == "module":
        shapes = _shapes(module.tree)
    else:
        shapes = [str(sorted(case.params.items())) for case in problem.cases]
    return (*shapes, "|", *operators) if operators and shapes else None


def _shapes(tree: ast.Module) -> list[str]:
    """Return the shapes in `get_inputs`, and the values that `get_init_inputs` returns."""
    known: dict[str, int] = {}
    for node in tree.body:
        for target in node.targets if isinstance(node, ast.Assign) else ():
            _note(target, node.value, known)  # type: ignore[attr-defined]
    shapes, numbers = list[str](), list[str]()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == "get_inputs":
            calls = [item for item in ast.walk(node) if isinstance(item, ast.Call)]
            shapes += filter(None, (_shape(call, known) for call in calls))
        elif isinstance(node, ast.FunctionDef) and node.name == "get_init_inputs":
            values = [item.value for item in ast.walk(node) if isinstance(item, ast.Return)]
            lists = [item.elts for item in values if isinstance(item, ast.List | ast.Tuple)]
            numbers = [_written(item, known) for each in lists for item in each]
    return [*shapes, f"made with {', '.join(numbers)}"] if shapes else []


def _note(target: ast.expr, value: ast.expr, known: dict[str, int]) -> None:
    """Record the integers that an assignment gives to one or several names."""
    if isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
        for each, item in zip(target.elts, value.elts, strict=False):
            _note(each, item, known)
    elif isinstance(target, ast.Name) and (number := _number(value, known)) is not None:
        known[target.id] = number


def _written(node: ast.expr, known: dict[str, int]) -> str:
    """Return a value as text, with the values of the module's constants."""
    if isinstance(node, ast.Tuple | ast.List):
        return str([_written(item, known) for item in node.elts])
    value = _number(node, known)
    return ast.unparse(node) if value is None else str(value)


def _shape(call: ast.Call, known: dict[str, int]) -> str | None:
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _MAKERS:
        return None
    args: Sequence[ast.expr] = call.args
    if call.func.attr in _SHAPE_IS_LIST:
        args = [item for item in args if isinstance(item, ast.Tuple | ast.List)]
    if len(args) == 1 and isinstance(args[0], ast.Tuple | ast.List):
        args = args[0].elts
    sizes = [_number(item, known) for item in args]
    return None if not sizes or None in sizes else str(sizes)


def _number(node: ast.AST, known: dict[str, int]) -> int | None:
    """Return the integer value of an expression of constants, without running it."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if not isinstance(node, ast.BinOp) or type(node.op) not in _OPERATORS:
        return None
    left, right = _number(node.left, known), _number(node.right, known)
    if left is None or right is None or (right == 0 and isinstance(node.op, ast.FloorDiv)):
        return None
    huge = isinstance(node.op, ast.Pow) and not (0 <= right <= 64 and abs(left) < 2**64)
    return None if huge else _OPERATORS[type(node.op)](left, right)
