"""Python source without running it: parsing, names, and literal strings.

These functions walk trees with loops: a hostile file can nest deeper than Python's stack.
"""

from __future__ import annotations

import ast
import gc
import threading
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from tilewright.records import SourceFile

_MAX_NAME_LENGTH = 1000
"""Characters of a dotted name that is followed through assignments."""
_MAX_FOLD = 64
"""Pieces of a string that `literal_text` joins; a longer expression is no literal."""
_parsing = threading.Lock()


class Fact(NamedTuple):
    """A fact of the source: its field of `StaticFeatures`, its name, its line."""

    field: str
    name: str
    line: int


@dataclass(frozen=True, slots=True)
class Unparseable:
    """The error of a `.py` file that is no Python. The caller turns it into a failed outcome."""

    path: str
    message: str
    """One line without the path; it begins with the line number if there is one."""


@dataclass(frozen=True, eq=False)
class Module:
    """A parsed Python file, and the meaning of its imported names."""

    path: str
    tree: ast.Module
    nodes: tuple[ast.AST, ...]
    """Every node of the tree, outer before inner."""
    aliases: dict[str, str] = field(default_factory=dict)
    """Local name to dotted name, from imports anywhere and from `x = imported.name`."""

    def dotted(self, node: ast.AST) -> str | None:
        """Return the full name of `node` if it starts at an import: `torch.nn...relu` for `F.relu`.

        It also follows `getattr(x, "literal")`, `sys.modules["literal"]`, `x.__dict__["literal"]`,
        `importlib.import_module("literal")` and `__import__("literal")`.
        """
        trail: list[str] = []
        while True:
            if isinstance(node, ast.Name) and node.id in self.aliases:
                return _join(self.aliases[node.id], trail)
            if isinstance(node, ast.Call) and (target := self.imported_by(node)) is not None:
                return _join(target, trail)
            step = self._member(node)
            if step is None:
                return None
            name, node = step
            trail.append(name)

    def is_import(self, call: ast.Call) -> bool:
        """Tell whether the call is `__import__(...)` or `importlib.import_module(...)`."""
        func, trail = call.func, [""]
        # Attributes of plain names alone: to follow calls from here could recurse without end.
        while isinstance(func, ast.Attribute):
            trail.append(func.attr)
            func = func.value
        if not isinstance(func, ast.Name):
            return False
        name = ".".join([self.aliases.get(func.id, func.id), *reversed(trail)]).rstrip(".")
        return name.removeprefix("builtins.") in ("__import__", "importlib.import_module")

    def imported_by(self, call: ast.Call) -> str | None:
        """Return the module that an importing call names, if its name is a literal."""
        return literal_text(call.args[0]) if call.args and self.is_import(call) else None

    def _member(self, node: ast.AST) -> tuple[str, ast.AST] | None:
        """Return the name and the owner of an attribute or item, however it is written."""
        if isinstance(node, ast.Attribute):
            return node.attr, node.value
        owner, key = None, None
        if isinstance(node, ast.Subscript):
            owner, key = node.value, literal_text(node.slice)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            name = node.func.id if node.func.id not in self.aliases else ""
            if name == "getattr" and len(node.args) >= 2:
                owner, key = node.args[0], literal_text(node.args[1])
            elif name == "vars" and len(node.args) == 1:
                owner, key = node.args[0], "__dict__"
        return None if owner is None or key is None else (key, owner)


def is_python(file: SourceFile) -> bool:
    return file.path.endswith(".py")


def parse_modules(files: Iterable[SourceFile]) -> tuple[Module, ...]:
    """Return the Python files of `files` that parse, in order."""
    parsed = (parse_module(file.path, file.text) for file in files if is_python(file))
    return tuple(module for module in parsed if isinstance(module, Module))


def parse_tree(text: str, path: str = "<unknown>") -> ast.Module:
    """Return the tree of Python source, or raise as `ast.parse`. Nothing else parses."""
    # One at a time: threads of CPython 3.11 share the variable that counts the depth of a tree, and
    # a parse in another thread can raise SystemError here. The lock does not cover all of them:
    # printing a traceback parses too. Threads also share the warning filters. Odd escapes in a
    # candidate are no warning of ours.
    with _parsing, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with suppress(SystemError):
            return ast.parse(text, filename=path)
        # Without garbage collection, in which other threads run.
        enabled = gc.isenabled()
        gc.disable()
        try:
            return ast.parse(text, filename=path)
        finally:
            if enabled:
                gc.enable()


@lru_cache(maxsize=64)
def parse_module(path: str, text: str) -> Module | Unparseable:
    """Return a parsed Python file, or `Unparseable` for text that is no Python."""
    try:
        tree = parse_tree(text, path)
    except SyntaxError as error:
        line = f"line {error.lineno}: " if error.lineno else ""
        return Unparseable(path, f"{line}{error.msg}")
    except (ValueError, RecursionError, MemoryError) as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        return Unparseable(path, reason)
    module = Module(path, tree, tuple(ast.walk(tree)))
    module.aliases.update(_imported_names(module))
    _collect_assignments(module)
    return module


def literal_text(node: ast.AST) -> str | None:
    """Return the constant string of `node`: a literal, `"a" + "b"`, or a join of literals."""
    pieces: list[str] = []
    waiting: list[ast.AST] = [node]
    for _ in range(_MAX_FOLD):
        if not waiting:
            return "".join(pieces)
        part = waiting.pop()
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            pieces.append(part.value)
        elif (inner := _pieces_of(part)) is not None:
            waiting.extend(reversed(inner))
        else:
            return None
    return None


def names_bound(tree: ast.Module) -> frozenset[str]:
    """Return the names that the file binds at its top level, also under `if`, `try` or `with`."""
    return frozenset(name for statement in _top_level(tree) for name in _bound_by(statement))


def names_defined(tree: ast.Module) -> list[str]:
    """Return the functions, classes and variables of the top level in order, without imports."""
    found = (
        name
        for statement in _top_level(tree)
        if not isinstance(statement, ast.Import | ast.ImportFrom)
        for name in sorted(_bound_by(statement))
    )
    return list(dict.fromkeys(found))


def star_imports(module: Module) -> tuple[str, ...]:
    """Return the modules of `from x import *`, with leading dots of relative ones removed."""
    found = (node for node in module.nodes if isinstance(node, ast.ImportFrom))
    return tuple(node.module or "" for node in found if node.names[0].name == "*")


def calls(module: Module) -> Iterator[ast.Call]:
    return (node for node in module.nodes if isinstance(node, ast.Call))


def _join(root: str, trail: Sequence[str]) -> str:
    name = ".".join([root, *(part for part in reversed(trail) if part != "__dict__")])
    return name.removeprefix("sys.modules.")


def _pieces_of(node: ast.AST) -> Sequence[ast.AST] | None:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return (node.left, node.right)
    if isinstance(node, ast.JoinedStr):
        return node.values
    if isinstance(node, ast.FormattedValue) and node.conversion == -1 and not node.format_spec:
        return (node.value,)
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "join"
        and isinstance(node.func.value, ast.Constant)
        and node.func.value.value == ""
        and len(node.args) == 1
        and isinstance(node.args[0], ast.List | ast.Tuple)
    ):
        return node.args[0].elts
    return None


def _imported_names(module: Module) -> Iterator[tuple[str, str]]:
    """Yield the local and the dotted name of each import."""
    for node in module.nodes:
        if isinstance(node, ast.Import):
            for name in node.names:
                first = name.name.partition(".")[0]
                yield (name.asname, name.name) if name.asname else (first, first)
        elif isinstance(node, ast.ImportFrom):
            origin = "." * node.level + (node.module or "")
            joint = "" if origin.endswith(".") else "."
            for name in node.names:
                if name.name != "*":
                    yield name.asname or name.name, f"{origin}{joint}{name.name}"


def _collect_assignments(module: Module) -> None:
    """Add `name = imported.thing` to the aliases, in the order of the file to follow chains."""
    found = [node for node in module.nodes if isinstance(node, ast.Assign)]
    for node in sorted(found, key=lambda each: each.lineno):
        target = node.targets[0]
        if len(node.targets) == 1 and isinstance(target, ast.Name):
            name = module.dotted(node.value)
            known = target.id in module.aliases
            # Without a limit, a chain whose name grows with each line would exhaust memory.
            if name is not None and not known and len(name) <= _MAX_NAME_LENGTH:
                module.aliases[target.id] = name


def _top_level(tree: ast.Module) -> Iterator[ast.stmt]:
    waiting: list[ast.stmt] = list(reversed(tree.body))
    while waiting:
        statement = waiting.pop()
        yield statement
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        for child in ast.iter_child_nodes(statement):
            if isinstance(child, ast.stmt):
                waiting.append(child)
            elif isinstance(child, ast.ExceptHandler | ast.match_case):
                waiting.extend(child.body)


def _bound_by(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
    elif isinstance(statement, ast.Import | ast.ImportFrom):
        for name in statement.names:
            if name.name != "*":
                yield name.asname or name.name.partition(".")[0]
    elif isinstance(statement, ast.Assign):
        for target in statement.targets:
            yield from names_stored(target)
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        yield from names_stored(statement.target)


def names_stored(target: ast.AST) -> Iterator[str]:
    """Yield each name that `target` assigns, as often as it does."""
    names = (node for node in ast.walk(target) if isinstance(node, ast.Name))
    return (name.id for name in names if isinstance(name.ctx, ast.Store))
