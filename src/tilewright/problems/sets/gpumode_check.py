"""The check of a GPU MODE task, by its text: its tolerances, or why it is not read."""

from __future__ import annotations

import ast

from tilewright.errors import ProblemError

CHECK = "check_implementation"
REFERENCE = "ref_kernel"
MAKER = "make_match_reference"
COMPARING = ("verbose_allclose", "match_reference")
EXACT = "verbose_allequal"
PLAIN = ("len", "join", "append", "float")
"""Calls that decide nothing: they count and join messages, and widen the outputs."""
Tolerances = tuple[float, float]
"""Relative and absolute."""
DEFAULTS: Tolerances = (1e-5, 1e-8)
"""Those of the helpers in GPU MODE's `utils.py`, if a task does not define its own."""


def tolerances_of(reference: ast.Module, helpers: ast.Module | None, where: str) -> Tolerances:
    """Return the tolerances of a check that only compares outputs with those of the reference.

    Raises:
        ProblemError: there is no check, or it does something else; the message says what.
    """
    default = _defaults(helpers)
    for node in reversed(reference.body):
        if isinstance(node, ast.FunctionDef) and node.name == CHECK:
            return _of_function(node, default, where)
        if isinstance(node, ast.Assign) and [_name(item) for item in node.targets] == [CHECK]:
            return _of_maker(node.value, default, where)
    raise ProblemError(f"{where}: defines no {CHECK}")


def _of_maker(value: ast.expr, default: Tolerances, where: str) -> Tolerances:
    if not isinstance(value, ast.Call) or _name(value.func) != MAKER:
        raise ProblemError(f"{where}: {CHECK} is not made by {MAKER}, so it stays unjudged")
    if [_name(item) for item in value.args] != [REFERENCE]:
        raise ProblemError(f"{where}: {CHECK} compares with something else than {REFERENCE}")
    return _given(value, default, where)


def _of_function(check: ast.FunctionDef, default: Tolerances, where: str) -> Tolerances:
    calls = [node for node in ast.walk(check) if isinstance(node, ast.Call)]
    found: set[Tolerances] = set()
    for call in calls:
        name = _name(call.func)
        if name in COMPARING:
            found.add(_given(call, default, where))
        elif name == EXACT:
            found.add((0.0, 0.0))
        elif name not in (*PLAIN, REFERENCE):
            raise ProblemError(
                f"{where}: {CHECK} does more than compare with {REFERENCE}: line {call.lineno} "
                f"calls {ast.unparse(call.func)}, so the task stays unjudged"
            )
    if len(found) != 1:
        what = "compares nothing" if not found else "has several tolerances"
        raise ProblemError(f"{where}: {CHECK} {what}, so the task stays unjudged")
    return found.pop()


def _given(call: ast.Call, default: Tolerances, where: str) -> Tolerances:
    found = dict(zip(("rtol", "atol"), default, strict=True))
    for item in call.keywords:
        if item.arg in found:
            if not isinstance(item.value, ast.Constant) or not isinstance(
                item.value.value, int | float
            ):
                raise ProblemError(
                    f"{where}: the {item.arg} of {CHECK} depends on the inputs, so the task stays "
                    "unjudged"
                )
            found[item.arg] = float(item.value.value)
    return found["rtol"], found["atol"]


def _defaults(helpers: ast.Module | None) -> Tolerances:
    """Return the defaults of `match_reference` in a task's own `utils.py`."""
    body = helpers.body if helpers is not None else []
    for node in body:
        if isinstance(node, ast.FunctionDef) and node.name == "match_reference":
            names = [item.arg for item in node.args.args][-len(node.args.defaults) :]
            values = dict(zip(names, node.args.defaults, strict=False))
            try:
                rtol, atol = (float(ast.literal_eval(values[name])) for name in ("rtol", "atol"))
            except (KeyError, ValueError, TypeError):
                break
            return rtol, atol
    return DEFAULTS


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
