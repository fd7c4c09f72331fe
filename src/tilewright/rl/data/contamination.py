"""Does data to learn from hold the problems that a model will be scored on?

Three ways of looking, each reported by its name:

* `reference`: the same program, once comments, layout and the names of its own are put aside.
* `shapes and operators`: the same shapes of inputs, the same numbers to make the module with, and
  the same operators of torch in the same order, however they are written.
* `prompt`: at least 60 % of what is peculiar to a benchmark's reference, in sequences of eight
  tokens, stands in the prompt or in the problem; sizes and inputs do not count. Sequences that
  several problems of the benchmark share are peculiar to none, and a reference with fewer than
  eight of its own is not looked for so.
"""

from __future__ import annotations

import ast
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from tilewright.languages.syntax import Module, parse_module, parse_tree
from tilewright.languages.torch_use import torch_facts
from tilewright.records import Problem
from tilewright.records.base import digest_text
from tilewright.rl.data.programs import canonical

__all__ = ["Benchmark", "Match", "reference_digest", "shapes_and_operators"]

How = Literal["reference", "shapes and operators", "prompt"]
GRAM, MAX_SHARED, MIN_SHARE, MIN_OWN = 8, 2, 0.6, 8
_TOKEN = re.compile(r"\w+|[^\w\s]")
_MAKERS = {"rand", "randn", "randint", "ones", "zeros", "empty", "full", "arange", "randperm"}
_INPUTS = {"get_inputs", "get_init_inputs", "inputs"}
_SHAPED = {"randint": 2, "full": 0}
"""Which argument of a maker holds the shape, where it is not spread over all of them."""
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
"""What modules share; a benchmark of one problem could not tell."""


@dataclass(frozen=True)
class Match:
    """A problem of the data that looks like one of a benchmark."""

    problem: str
    benchmark: str
    how: How
    share: float
    """Of what was compared, 0 to 1."""


class Benchmark:
    """Problems that data is held against. Lifetime: one export."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self._by_reference: dict[str, str] = {}
        self._by_work: dict[tuple[str, ...], str] = {}
        grams: dict[str, set[int]] = {}
        for problem in problems:
            text = problem.source.text
            self._by_reference.setdefault(reference_digest(text), problem.id)
            work = shapes_and_operators(problem)
            if work is not None:
                self._by_work.setdefault(work, problem.id)
            grams[problem.id] = set(_grams(_heart(text)))
        common = Counter(gram for found in grams.values() for gram in found)
        shared = set(_grams(_heart(SKELETON)))
        most = max(MAX_SHARED, len(grams) // 50)
        self._sizes: dict[str, int] = {}
        self._holders: dict[int, list[str]] = defaultdict(list)
        for name, found in grams.items():
            own = [gram for gram in found - shared if common[gram] <= most]
            self._sizes[name] = len(own)
            for gram in own if len(own) >= MIN_OWN else ():
                self._holders[gram].append(name)

    def matches(self, problem: Problem, prompt: str = "") -> list[Match]:
        """Return how a problem, and a prompt that asks for it, look like the benchmark's.

        Args:
            problem: of the data.
            prompt: what a model is shown; only fenced code in it and its words count.
        """
        text = problem.source.text
        found: list[Match] = []
        twin = self._by_reference.get(reference_digest(text))
        if twin is not None:
            found.append(Match(problem.id, twin, "reference", 1.0))
        work = shapes_and_operators(problem)
        twin = None if work is None else self._by_work.get(work)
        if twin is not None:
            found.append(Match(problem.id, twin, "shapes and operators", 1.0))
        counts: Counter[str] = Counter()
        # Comments stand in prompts, and the benchmark's were taken out: both ways are looked at.
        for gram in {*_grams(canonical(text)), *_grams(prompt)}:
            counts.update(self._holders.get(gram, ()))
        shares = {name: count / self._sizes[name] for name, count in counts.items()}
        close = [(share, name) for name, share in shares.items() if share >= MIN_SHARE]
        if close:
            share, name = max(close)
            found.append(Match(problem.id, name, "prompt", share))
        return found


def _heart(text: str) -> str:
    """Return the definitions that compute, in canonical text; what makes inputs is left out."""
    try:
        tree = parse_tree(canonical(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text
    chosen = [
        node
        for node in tree.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name not in _INPUTS
    ]
    return "\n".join(ast.unparse(node) for node in chosen)


def _grams(text: str) -> Iterable[int]:
    words = _TOKEN.findall(text)
    return (hash(tuple(words[place : place + GRAM])) for place in range(len(words) - GRAM + 1))


def reference_digest(text: str) -> str:
    """Return a digest of a program that does not depend on comments, layout and its own names.

    Names that the program binds are numbered by their first use; attributes, keywords, constants
    and imported names stay.
    """
    plain = canonical(text)
    module = parse_module("reference.py", plain)
    if not isinstance(module, Module):
        return digest_text(plain)
    # A tree of our own: the parsed module is shared.
    tree, names = parse_tree(plain), dict[str, str]()
    kept = {"Model", "get_inputs", "get_init_inputs", "reference", "inputs"}
    bound = _bound(tree) - set(module.aliases) - kept
    for node in ast.walk(tree):
        for part in ("id", "name", "arg"):
            name = getattr(node, part, None)
            if isinstance(name, str) and name in bound:
                setattr(node, part, names.setdefault(name, f"v{len(names)}"))
        if isinstance(node, ast.Attribute) and node.attr in bound and _of_self(node):
            node.attr = names.setdefault(node.attr, f"v{len(names)}")
        # Types are words about a program.
        if isinstance(node, ast.arg):
            node.annotation = None
        if isinstance(node, ast.FunctionDef):
            node.returns = None
    return digest_text(ast.unparse(tree))


def _of_self(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id == "self"


def _bound(tree: ast.Module) -> set[str]:
    """Return the names that a program gives itself."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("__"):
            found.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
    return found - {"self", "forward"}


def shapes_and_operators(problem: Problem) -> tuple[str, ...] | None:
    """Return the shapes of a problem's inputs and its operators in order.

    Shapes are followed by the numbers that the module is made with, as kernel sizes. Nothing is
    run. `None` where no operator or no shape can be read off the source.
    """
    module = parse_module("reference.py", problem.source.text)
    if not isinstance(module, Module):
        return None
    # Outer nodes come before inner ones, which are computed first.
    found = enumerate(torch_facts(module))
    facts = [fact for _, fact in sorted(found, key=lambda item: (item[1].line, -item[0]))]
    called = {fact.name for fact in facts if fact.field == "torch_ops"}
    # A module is an operator where it is called; one that is only made, as in a row, where it is.
    operators = [f.name for f in facts if f.field == "torch_ops" or f.name not in called]
    if problem.kind == "module":
        shapes = _shapes(module.tree)
    else:
        shapes = [str(sorted(case.params.items())) for case in problem.cases]
    if not operators or not shapes:
        return None
    return (*shapes, "|", *operators)


def _shapes(tree: ast.Module) -> list[str]:
    """Return the shapes that `get_inputs` makes, and the numbers of `get_init_inputs`."""
    known: dict[str, int] = {}
    for node in tree.body:
        for target in node.targets if isinstance(node, ast.Assign) else ():
            _note(target, node.value, known)  # type: ignore[attr-defined]
    shapes, numbers = list[str](), list[str]()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == "get_inputs":
            for call in ast.walk(node):
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
                    shape = _shape(call, call.func.attr, known)
                    shapes += [] if shape is None else [shape]
        elif isinstance(node, ast.FunctionDef) and node.name == "get_init_inputs":
            values = [item.value for item in ast.walk(node) if isinstance(item, ast.Return)]
            lists = [item.elts for item in values if isinstance(item, ast.List | ast.Tuple)]
            numbers = [_written(item, known) for each in lists for item in each]
    return [*shapes, f"made with {', '.join(numbers)}"] if shapes else []


def _note(target: ast.expr, value: ast.expr, known: dict[str, int]) -> None:
    """Remember the integers that an assignment gives to names, also several at once."""
    if isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
        for each, item in zip(target.elts, value.elts, strict=False):
            _note(each, item, known)
    elif isinstance(target, ast.Name):
        number = _number(value, known)
        if number is not None:
            known[target.id] = number


def _written(node: ast.expr, known: dict[str, int]) -> str:
    """Return a value as text, constants of the module put in."""
    if isinstance(node, ast.Tuple | ast.List):
        return str([_written(item, known) for item in node.elts])
    value = _number(node, known)
    return ast.unparse(node) if value is None else str(value)


def _shape(call: ast.Call, maker: str, known: dict[str, int]) -> str | None:
    if maker not in _MAKERS:
        return None
    args: Sequence[ast.expr] = call.args
    if maker in _SHAPED:
        args = [item for item in args if isinstance(item, ast.Tuple | ast.List)]
    if len(args) == 1 and isinstance(args[0], ast.Tuple | ast.List):
        args = args[0].elts
    sizes = [_number(item, known) for item in args]
    return None if not sizes or None in sizes else str(sizes)


def _number(node: ast.AST, known: dict[str, int]) -> int | None:
    """Return an integer that an expression of constants gives; nothing of it is run."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.BinOp):
        left, right = _number(node.left, known), _number(node.right, known)
        if left is None or right is None:
            return None
        return _combined(node.op, left, right)
    return None


def _combined(op: ast.operator, left: int, right: int) -> int | None:
    match op:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
        case ast.FloorDiv() if right:
            return left // right
        case ast.Pow() if 0 <= right <= 64 and math.log2(max(abs(left), 1)) * right < 64:
            return int(left**right)
        case _:
            return None
