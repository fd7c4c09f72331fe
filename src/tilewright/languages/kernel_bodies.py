"""Facts about the body of a Triton kernel: the pointers it uses, its loop axes, its statements.

A pointer parameter reaches a load or a store through sums such as `x_ptr + offsets`. A factor of a
product, such as a stride, is no pointer.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from tilewright.languages.operator_names import name_set
from tilewright.languages.syntax import Module, names_stored
from tilewright.languages.triton_kernels import is_jit

LOADS = name_set("load gather load_tensor_descriptor _experimental_descriptor_load")
STORES = name_set("store scatter store_tensor_descriptor _experimental_descriptor_store")
INDEXING = name_set(
    """
    advance arange assume cdiv constexpr device_assert device_print full make_block_ptr
    make_tensor_descriptor max_constancy max_contiguous multiple_of num_programs program_id range
    static_assert static_print static_range swizzle2d zeros
    """
)
"""Functions of triton.language that neither access memory nor compute on data."""
_MAX_CALLS = 8
"""Most nested calls of device functions that are followed."""
_LANGUAGES = ("triton.language.", "triton.experimental.gluon.language.")


@dataclass(frozen=True)
class KernelBody:
    """A Triton kernel."""

    name: str
    line: int
    parameters: tuple[str, ...] = ()
    read: frozenset[str] = frozenset()
    """Parameters through which it loads."""
    written: frozenset[str] = frozenset()
    """Parameters through which it stores."""
    axes: int = 0
    """Axes of its grid that it reads, and loops in its body."""
    independent: bool = False
    """Whether two of its statements that load, store or compute do not depend on each other."""
    known: bool = True
    """Whether its body is in the file."""

    @property
    def pointers(self) -> frozenset[str]:
        """Return the parameters that point to memory."""
        return self.read | self.written


@dataclass
class _Uses:
    """The parameters through which a body loads and stores."""

    read: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)


@lru_cache(maxsize=8)
def kernel_bodies(module: Module) -> dict[str, KernelBody]:
    """Return the kernels of a file by name."""
    functions = {node.name: node for node in module.nodes if isinstance(node, ast.FunctionDef)}
    found = {}
    for name, line in _defined(module):
        body = functions.get(name)
        if body is None:
            found[name] = KernelBody(name, line, known=False)
            continue
        uses = _Pointers(module, functions).uses(body)
        found[name] = KernelBody(
            name,
            line,
            _parameters(body),
            frozenset(uses.read),
            frozenset(uses.written),
            _axes(module, body),
            _has_independent(module, body),
        )
    return found


def _defined(module: Module) -> Iterator[tuple[str, int]]:
    """Yield the functions with a kernel's decorator, and those that `triton.jit(f)` wraps."""
    for node in module.nodes:
        if isinstance(node, ast.FunctionDef):
            if any(is_jit(module, decorator) for decorator in node.decorator_list):
                yield node.name, node.lineno
        elif isinstance(node, ast.Call) and is_jit(module, node):
            names = [each.id for each in node.args[:1] if isinstance(each, ast.Name)]
            yield from ((name, node.lineno) for name in names)


def _parameters(function: ast.FunctionDef) -> tuple[str, ...]:
    arguments = function.args
    return tuple(
        each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    )


def language_call(module: Module, call: ast.Call) -> str:
    """Return the function of triton.language that a call names; empty if it is no such call."""
    name = module.dotted(call.func) or ""
    return next((name.removeprefix(start) for start in _LANGUAGES if name.startswith(start)), "")


class _Pointers:
    """Follows the parameters of kernels into loads and stores. Lifetime: one file."""

    def __init__(self, module: Module, functions: Mapping[str, ast.FunctionDef]) -> None:
        self._module, self._functions = module, functions

    def uses(self, function: ast.FunctionDef, depth: int = 0) -> _Uses:
        origins = {name: frozenset({name}) for name in _parameters(function)}
        found = _Uses()
        # The second pass sees what a loop assigned at its end.
        for _ in range(2):
            for node in _in_order(function):
                self._assign(node, origins)
                if isinstance(node, ast.Call):
                    self._call(node, origins, found, depth)
        return found

    def _assign(self, node: ast.AST, origins: dict[str, frozenset[str]]) -> None:
        if isinstance(node, ast.Assign):
            value = self._origin(node.value, origins)
            for target in node.targets:
                for name in names_stored(target):
                    origins[name] = value
        elif isinstance(node, ast.AugAssign | ast.AnnAssign) and node.value is not None:
            for name in names_stored(node.target):
                more = self._origin(node.value, origins)
                origins[name] = origins.get(name, frozenset()) | more

    def _origin(self, node: ast.expr, origins: Mapping[str, frozenset[str]]) -> frozenset[str]:
        """Return the parameters to which an address belongs."""
        found: set[str] = set()
        waiting = [node]
        while waiting:
            each = waiting.pop()
            if isinstance(each, ast.Name):
                found |= origins.get(each.id, frozenset())
            elif isinstance(each, ast.BinOp) and isinstance(each.op, ast.Add | ast.Sub):
                waiting += [each.left, each.right]
            elif isinstance(each, ast.Subscript):
                waiting.append(each.value)
            elif isinstance(each, ast.IfExp):
                waiting += [each.body, each.orelse]
            elif isinstance(each, ast.Call):
                waiting += self._address_of(each)
        return frozenset(found)

    def _address_of(self, call: ast.Call) -> list[ast.expr]:
        """Return the argument of a call that holds the address of its result."""
        name = language_call(self._module, call)
        if name in ("make_block_ptr", "make_tensor_descriptor"):
            return call.args[:1] or [key.value for key in call.keywords if key.arg == "base"]
        if name in ("advance", "multiple_of", "max_contiguous", "cast"):
            return call.args[:1]
        if not name and isinstance(call.func, ast.Attribute) and call.func.attr in ("to", "cast"):
            return [call.func.value]
        return []

    def _call(
        self, call: ast.Call, origins: Mapping[str, frozenset[str]], found: _Uses, depth: int
    ) -> None:
        name = language_call(self._module, call)
        method = isinstance(call.func, ast.Attribute) and not name
        last = call.func.attr if isinstance(call.func, ast.Attribute) else name
        address = call.func.value if method and isinstance(call.func, ast.Attribute) else None
        if address is None:
            address = next(iter(call.args), None) or next(
                (key.value for key in call.keywords if key.arg in ("pointer", "ptr")), None
            )
        if (name or method) and address is not None:
            if last in STORES or last.startswith("atomic_"):
                found.written |= self._origin(address, origins)
            if last in LOADS or last.startswith("atomic_"):
                found.read |= self._origin(address, origins)
        callee = self._functions.get(call.func.id) if isinstance(call.func, ast.Name) else None
        if callee is not None and depth < _MAX_CALLS:
            self._through(callee, call, origins, found, depth)

    def _through(
        self,
        callee: ast.FunctionDef,
        call: ast.Call,
        origins: Mapping[str, frozenset[str]],
        found: _Uses,
        depth: int,
    ) -> None:
        inner, names = self.uses(callee, depth + 1), _parameters(callee)
        given = dict(zip(names, call.args, strict=False))
        given |= {key.arg: key.value for key in call.keywords if key.arg in names}
        for parameter, value in given.items():
            origin = self._origin(value, origins)
            found.read |= origin if parameter in inner.read else set()
            found.written |= origin if parameter in inner.written else set()


@lru_cache(maxsize=32)
def _in_order(function: ast.FunctionDef) -> tuple[ast.AST, ...]:
    """Return the nodes of a body in the order of the text."""
    nodes = [node for statement in function.body for node in ast.walk(statement)]
    return tuple(sorted(nodes, key=lambda node: getattr(node, "lineno", 0)))


def _axes(module: Module, function: ast.FunctionDef) -> int:
    nodes = _in_order(function)
    programs = set()
    for node in nodes:
        if isinstance(node, ast.Call) and language_call(module, node) == "program_id":
            axis = node.args[0] if node.args else next((k.value for k in node.keywords), None)
            programs.add(ast.unparse(axis) if axis is not None else "")
    return len(programs) + sum(isinstance(node, ast.For | ast.While) for node in nodes)


def _has_independent(module: Module, function: ast.FunctionDef) -> bool:
    """Tell whether a block has two working statements, neither of which needs the other."""
    blocks = [function.body]
    for node in _in_order(function):
        blocks += [block for name in ("body", "orelse") if (block := _block(node, name))]
    return any(_independent_in(module, block) for block in blocks)


def _block(node: ast.AST, name: str) -> list[ast.stmt]:
    if not isinstance(node, ast.For | ast.While | ast.If | ast.With):
        return []
    return list(getattr(node, name, []))


def _independent_in(module: Module, block: list[ast.stmt]) -> bool:
    needs: dict[str, frozenset[int]] = {}
    """Name: the working statements that its value depends on."""
    working = 0
    for place, statement in enumerate(block):
        nodes = list(ast.walk(statement))
        names = [node for node in nodes if isinstance(node, ast.Name)]
        read = {node.id for node in names if isinstance(node.ctx, ast.Load)}
        if isinstance(statement, ast.AugAssign):
            read |= set(names_stored(statement.target))
        sources = frozenset().union(*(needs.get(name, frozenset()) for name in read))
        if _works(module, nodes):
            if len(sources) < working:
                return True
            working += 1
            sources |= {place}
        for node in names:
            if isinstance(node.ctx, ast.Store):
                needs[node.id] = sources
    return False


def _works(module: Module, nodes: list[ast.AST]) -> bool:
    for node in nodes:
        if isinstance(node, ast.Call):
            name = language_call(module, node)
            if name and name not in INDEXING and name not in ("float32", "float16"):
                return True
    return False
