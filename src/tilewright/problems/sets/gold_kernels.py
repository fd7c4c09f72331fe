"""Which operators of a gold file launch one of its Triton kernels, by the text."""

from __future__ import annotations

import ast


def launching(implementation: ast.Module) -> set[str]:
    """Return the functions and classes that reach a kernel, through any of the others."""
    defined = {
        node.name: node
        for node in implementation.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }
    uses = {name: _names(node) & defined.keys() - {name} for name, node in defined.items()}
    reached = {name for name, node in defined.items() if _is_kernel(node)}
    kernels = set(reached)
    while grown := {name for name, used in uses.items() if used & reached} - reached:
        reached |= grown
    return reached - kernels


def _is_kernel(node: ast.FunctionDef | ast.ClassDef) -> bool:
    """Tell whether a definition is decorated by `triton.jit`, maybe with options."""
    return any(
        getattr(each, "attr", getattr(each, "id", "")) == "jit"
        for decorator in node.decorator_list
        for each in (decorator, getattr(decorator, "func", None))
    )


def _names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
