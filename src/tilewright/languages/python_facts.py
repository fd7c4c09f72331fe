"""Facts about Python source, from its syntax tree."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tilewright.languages.cpp_facts import native_facts
from tilewright.languages.cpp_lexer import looks_native
from tilewright.languages.extensions import extension_calls
from tilewright.languages.operator_names import EXACT_NAMES, NAME_PREFIXES, WATCHED_MODULES
from tilewright.languages.syntax import Fact, Module, literal_text, names_bound
from tilewright.languages.torch_use import fallback_facts, torch_facts
from tilewright.languages.triton_kernels import kernel_facts

_BY_NAME = frozenset({"getattr", "setattr", "delattr", "hasattr"})
_ENCODED = re.compile(r"[0-9a-fA-F]{128,}|[A-Za-z0-9+/]{256,}={0,2}")
_LONG_BYTES = 256


def python_facts(module: Module) -> Iterator[Fact]:
    """Yield all facts of one file, in no particular order, with repetitions."""
    for extension in extension_calls(module):
        kind = "cuda" if extension.cuda else "cpp"
        yield Fact("extensions", f"{extension.builder} {kind}", extension.line)
    for facts in (kernel_facts, torch_facts, fallback_facts, _names_used):
        yield from facts(module)
    for node in module.nodes:
        if isinstance(node, ast.Call):
            yield from _patch_by_call(module, node)
            yield from _name_by_value(module, node)
        elif isinstance(node, ast.Constant | ast.BinOp):
            yield from _literal(node)
        elif isinstance(node, ast.Attribute | ast.Subscript) and type(node.ctx) is not ast.Load:
            yield from _name_written(module, node)


def imported_modules(module: Module) -> Iterator[str]:
    """Yield the dotted names of imported modules; a relative import keeps its dots."""
    for node in module.nodes:
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")
        elif isinstance(node, ast.Call):
            name = module.imported_by(node)
            if name is not None:
                yield name


def _names_used(module: Module) -> Iterator[Fact]:
    """Yield uses of listed names, each at its longest dotted name."""
    inner = {id(node.value) for node in module.nodes if isinstance(node, ast.Attribute)}
    own = names_bound(module.tree)
    for node in module.nodes:
        if id(node) in inner or not isinstance(node, ast.Name | ast.Attribute | ast.Call):
            continue
        name = module.dotted(node) or _builtin(node)
        if name is None or name in own:
            continue
        name = name.removeprefix("builtins.")
        field = EXACT_NAMES.get(name) or next(
            (field for start, field in NAME_PREFIXES if name.startswith(start)), None
        )
        if field is not None:
            yield Fact(field, name, node.lineno)


def _builtin(node: ast.AST) -> str | None:
    if isinstance(node, ast.Name):
        return node.id if isinstance(node.ctx, ast.Load) else None
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return ast.unparse(node) if node.value.id in ("bytes", "bytearray") else None
    return None


def _name_written(module: Module, node: ast.Attribute | ast.Subscript) -> Iterator[Fact]:
    """Yield an assignment to an attribute or item of a watched module, or its deletion."""
    if isinstance(node, ast.Subscript) and module.dotted(node) is None:
        yield from _written(module.dotted(node.value), "?", node.lineno)
    else:
        yield from _written(module.dotted(node), "", node.lineno)


def _written(owner: str | None, attribute: str, line: int) -> Iterator[Fact]:
    """Yield the write of an attribute, or of `owner` itself if `attribute` is empty."""
    if owner is not None and owner.partition(".")[0] in WATCHED_MODULES:
        name = f"{owner}.{attribute}" if attribute else owner
        flag = name.startswith(("torch.backends.", "os.environ"))
        yield Fact("global_flags" if flag else "patches", name, line)


def _patch_by_call(module: Module, call: ast.Call) -> Iterator[Fact]:
    """Yield writes by function: `setattr`, `__setattr__`, `vars(x).update`, and flags."""
    func, args = call.func, call.args
    by_name = isinstance(func, ast.Name) and func.id in ("setattr", "delattr")
    by_method = isinstance(func, ast.Attribute) and func.attr in ("__setattr__", "__delattr__")
    if (by_name or by_method) and len(args) >= 2:
        yield from _written(module.dotted(args[0]), literal_text(args[1]) or "?", call.lineno)
    elif isinstance(func, ast.Attribute) and func.attr in ("update", "setdefault"):
        if _is_namespace(func.value):
            yield from _written(module.dotted(func.value), "?", call.lineno)
    else:
        name = module.dotted(func)
        if name is not None and name.startswith("torch.backends."):
            yield Fact("global_flags", name, call.lineno)


def _is_namespace(node: ast.expr) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr == "__dict__"
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "vars"


def _name_by_value(module: Module, call: ast.Call) -> Iterator[Fact]:
    """Yield attribute and module names that the source computes."""
    func, args = call.func, call.args
    if isinstance(func, ast.Name) and func.id in _BY_NAME and len(args) >= 2:
        if not isinstance(args[1], ast.Constant):
            owner = module.dotted(args[0])
            where = "" if owner is None else f"{owner}."
            text = f"{func.id} {where}{literal_text(args[1]) or '?'}"
            yield Fact("assembled_names", text, call.lineno)
    elif module.is_import(call) and args and not isinstance(args[0], ast.Constant):
        yield Fact("assembled_names", f"import {literal_text(args[0]) or '?'}", call.lineno)


def _literal(node: ast.Constant | ast.BinOp) -> Iterator[Fact]:
    value = node.value if isinstance(node, ast.Constant) else literal_text(node)
    if isinstance(value, bytes) and len(value) >= _LONG_BYTES:
        yield Fact("decoding", f"literal of {len(value)} bytes", node.lineno)
    if not isinstance(value, str):
        return
    if _ENCODED.fullmatch(value):
        yield Fact("decoding", f"literal of {len(value)} characters", node.lineno)
    if looks_native(value):
        yield from native_facts(value, node.lineno)
    elif re.search(r"(?:^|[^\w.])/proc\b", value):
        yield Fact("proc_access", value.strip()[:60], node.lineno)
