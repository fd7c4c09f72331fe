"""Faults for gold implementations: rewritings of their syntax tree, and wrappers around them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from tilewright.records import Problem

Change = Callable[[], None]
WRAPPERS = {
    "wrong dtype": """
def {entry}(*args, **kwargs):
    out = _gold(*args, **kwargs)
    return _mapped(out, lambda x: x.half() if x.dtype == _torch.float32 else x.float())
""",
    "stale output": """
_first = {{}}


def {entry}(*args, **kwargs):
    key = repr([getattr(x, "shape", x) for x in [*args, *kwargs.values()]])
    if key not in _first:
        _first[key] = _mapped(_gold(*args, **kwargs), lambda x: x.clone())
    return _mapped(_first[key], lambda x: x.clone())
""",
    "stale arguments": """
_first = {{}}


def {entry}(*args, **kwargs):
    values = [x for x in [*args, *kwargs.values()] if isinstance(x, _torch.Tensor)]
    key = repr([x.shape for x in values])
    if key not in _first:
        _gold(*args, **kwargs)
        _first[key] = [x.clone() for x in values]
    for old, new in zip(values, _first[key]):
        old.copy_(new)
""",
    "half the rows": """
def {entry}(*args, **kwargs):
    values = [x for x in [*args, *kwargs.values()] if isinstance(x, _torch.Tensor)]
    before = [x.clone() for x in values]
    _gold(*args, **kwargs)
    for now, then in zip(values, before):
        now[: len(now) // 2] = then[: len(now) // 2] if now.dim() else then
""",
}
PRELUDE = """

import torch as _torch

_gold = {entry}


def _mapped(value, change):
    if isinstance(value, _torch.Tensor):
        return change(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_mapped(x, change) for x in value)
    return value

"""


IN_PLACE = ("stale arguments", "half the rows")
"""Wrappers for golds that return nothing and overwrite arguments."""


@dataclass(frozen=True)
class Fault:
    """A gold with one planted fault, as a row of the file that `bench --candidates` reads."""

    problem: str
    fault: str
    in_place: bool
    code: str

    @property
    def is_certain(self) -> bool:
        """Whether the fault shows on any inputs, so that nothing must be run to know it."""
        return self.fault in ("wrong dtype", "stale output", "stale arguments")


def off_by_one_masks(tree: ast.Module) -> Iterator[Change]:
    """Yield changes of `x < n` to `x < n - 1` in assignments of masks."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign) or "mask" not in ast.unparse(node.targets[0]):
            continue
        for part in ast.walk(node.value):
            if isinstance(part, ast.Compare) and isinstance(part.ops[0], ast.Lt):
                yield partial(_lower, part)


def _lower(comparison: ast.Compare) -> None:
    comparison.comparators[0] = ast.BinOp(comparison.comparators[0], ast.Sub(), ast.Constant(1))


def dropped_scales(tree: ast.Module) -> Iterator[Change]:
    """Yield changes of `a * scale` to `a * 1` and of `a *= scale` to `a *= 1`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and _scales(node.right):
            yield partial(setattr, node, "right", ast.Constant(1))
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Mult):
            yield partial(setattr, node, "value", ast.Constant(1))


def _scales(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, float) and node.value != 1
    words = ("scale", "alpha", "beta", "weight", "rstd", "gamma", "lr", "factor", "inv")
    return isinstance(node, ast.Name) and any(word in node.id.lower() for word in words)


REWRITINGS = {"off-by-one mask": off_by_one_masks, "dropped scale": dropped_scales}


def returns_nothing(problem: Problem) -> bool:
    """Tell whether a gold returns nothing, so that its outputs are arguments."""
    for node in ast.walk(ast.parse(problem.source.text)):
        if isinstance(node, ast.FunctionDef) and node.name == problem.entry:
            returned = [part for part in ast.walk(node) if isinstance(part, ast.Return)]
            return all(part.value is None for part in returned)
    return False


def wrapped(problem: Problem, in_place: bool) -> Iterator[Fault]:
    """Yield the gold within each wrapper that fits it."""
    text = problem.source.text
    if f"def {problem.entry}(" not in text:
        return
    for fault, wrapper in WRAPPERS.items():
        if in_place is (fault in IN_PLACE):
            code = text + (PRELUDE + wrapper).format(entry=problem.entry)
            yield Fault(problem.id, fault, in_place, code)


def rewritten(problem: Problem, in_place: bool) -> Iterator[Fault]:
    """Yield the gold with each rewriting at each place, before the tests."""
    for fault, places in REWRITINGS.items():
        for number in range(len(list(places(ast.parse(problem.source.text))))):
            tree = ast.parse(problem.source.text)
            list(places(tree))[number]()
            yield Fault(problem.id, fault, in_place, ast.unparse(ast.fix_missing_locations(tree)))


def faults_of(problem: Problem) -> list[Fault]:
    """Return every fault that can be planted into a gold."""
    in_place = returns_nothing(problem)
    return [*rewritten(problem, in_place), *wrapped(problem, in_place)]
