"""A function of one Python file, with everything it needs, as one function of another file.

A nested file shares no names with the file around it, since all its names are local.
"""

from __future__ import annotations

import ast

from tilewright.languages.syntax import names_bound, parse_tree


class CannotNest(ValueError):
    """A file that means something else inside a function; the message says why."""


def nested(text: str, wanted: str, name: str) -> str:
    """Return the source of a function `name` that returns the function `wanted` of a file.

    It contains only the statements of the file that bind a name which `wanted` needs.

    Raises:
        CannotNest: the file imports `*`, declares a name as `global`, or defines no such function.
    """
    tree = parse_tree(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            raise CannotNest("it imports `*`")
        if isinstance(node, ast.Global):
            raise CannotNest("it declares a name as `global`")
    body = _needed(tree, wanted)
    if not body:
        raise CannotNest(f"it defines no {wanted!r}")
    arguments = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    end = ast.Return(value=ast.Name(id=wanted, ctx=ast.Load()))
    function = ast.FunctionDef(name=name, args=arguments, body=[*body, end], decorator_list=[])
    # `ast.unparse` reads the lines of some nodes.
    return ast.unparse(ast.fix_missing_locations(ast.Module(body=[function], type_ignores=[])))


def _needed(tree: ast.Module, wanted: str) -> list[ast.stmt]:
    """Return the statements that bind a name which another needed one reads, in order."""
    statements = [item for item in tree.body if not _is_future(item)]
    needed, before = {wanted}, set[str]()
    while needed != before:
        before = set(needed)
        for item in statements:
            if _bound(item) & needed:
                needed |= {node.id for node in ast.walk(item) if isinstance(node, ast.Name)}
    return [item for item in statements if _bound(item) & needed]


def _bound(statement: ast.stmt) -> frozenset[str]:
    return names_bound(ast.Module(body=[statement], type_ignores=[]))


def _is_future(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
