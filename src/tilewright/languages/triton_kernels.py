"""Triton kernels in Python source: definitions, launches, calls and other uses."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tilewright.languages.operator_names import JIT_DECORATORS
from tilewright.languages.syntax import Fact, Module, calls


def kernel_facts(module: Module) -> Iterator[Fact]:
    """Yield each definition of a kernel, and each use.

    - `kernels_launched`: `name[grid](...)` or `name.run(...)`, also through an alias of the name.
    - `kernels_called`: another kernel calls it.
    - `kernels_passed`: any other use as a value. A launch may then be out of sight.
    """
    defined = {name: line for name, line, _ in _kernels(module)}
    for name, line in defined.items():
        yield Fact("kernels_defined", name, line)
    known = {name: name for name in defined}
    seen: set[int] = set()
    for node in module.nodes:
        if isinstance(node, ast.Assign) and (meant := known.get(_key(node.value))):
            seen.add(id(node.value))
            known.update({key: meant for key in map(_key, node.targets) if key})
    inside = kernel_nodes(module)
    for call in calls(module):
        launched, used = _launched(call, known)
        if launched is None and id(call) not in inside:
            continue
        kernel = launched or known.get(_key(call.func))
        if kernel is not None:
            seen.add(id(used))
            yield Fact("kernels_launched" if launched else "kernels_called", kernel, call.lineno)
    loaded = (each for each in module.nodes if isinstance(getattr(each, "ctx", None), ast.Load))
    for node in loaded:
        if isinstance(node, ast.Name) and node.id in defined and id(node) not in seen:
            yield Fact("kernels_passed", node.id, node.lineno)


def kernel_nodes(module: Module) -> frozenset[int]:
    """Return the ids of the nodes inside kernels, where operator names are Triton's."""
    return frozenset(
        id(node)
        for _, _, function in _kernels(module)
        if function is not None
        for statement in function.body
        for node in ast.walk(statement)
    )


def _kernels(module: Module) -> Iterator[tuple[str, int, ast.FunctionDef | None]]:
    for node in module.nodes:
        if isinstance(node, ast.FunctionDef):
            if any(is_jit(module, decorator) for decorator in node.decorator_list):
                yield node.name, node.lineno, node
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            target = node.targets[0]
            if isinstance(target, ast.Name) and node.value.args and is_jit(module, node.value):
                yield target.id, node.lineno, None


def is_jit(module: Module, node: ast.expr) -> bool:
    """Tell whether `node` is `triton.jit` or a call of it, with or without options."""
    func = node.func if isinstance(node, ast.Call) else node
    return module.dotted(func) in JIT_DECORATORS


def _launched(call: ast.Call, known: dict[str, str]) -> tuple[str | None, ast.expr]:
    func = call.func
    launches = isinstance(func, ast.Attribute) and func.attr in ("run", "warmup")
    if isinstance(func, ast.Subscript) or (isinstance(func, ast.Attribute) and launches):
        return known.get(_key(func.value)), func.value
    return None, func


def _key(node: ast.expr) -> str:
    """Return `name` or `self.name`, whatever `self` is called; empty for anything else."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f".{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""
