"""Expressions of host code, evaluated over the memory that they point to instead of over data."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tilewright.languages.host_calls import (
    ALLOCATIONS,
    ARITHMETIC,
    SCALARS,
    computing_function,
    computing_method,
    computing_module,
    last_part,
)
from tilewright.languages.host_values import NOTHING, HostReference, ProgramMemory, Value, union
from tilewright.languages.kernel_bodies import KernelBody
from tilewright.languages.syntax import Module
from tilewright.languages.triton_kernels import is_jit

MAX_NODES = 20_000
"""Most expressions of one analysis: an honest file has hundreds, and a hostile one stops here."""
MAX_DEPTH = 100
"""Most nested expressions, so that no file exhausts Python's stack."""
BUILTINS = frozenset(dir(builtins))
"""Functions of Python itself, which do not compute on tensors."""
CONTAINERS = ("Sequential", "ModuleList")


class AnalysisLimitError(Exception):
    """A file exceeds a limit of the analysis."""


@dataclass
class Scope:
    """The variables of one function call. Lifetime: that call."""

    variables: dict[str, Value] = field(default_factory=dict)
    outer: Mapping[str, Value] = field(default_factory=dict)
    """The variables of the file, or of an enclosing function."""
    returns: list[Value] = field(default_factory=list)

    def branch(self) -> Scope:
        """Return a scope with variables of its own that returns to the same caller."""
        return Scope(dict(self.variables), self.outer, self.returns)


@dataclass(frozen=True)
class Given:
    """The arguments of a call."""

    positional: tuple[Value, ...] = ()
    named: Mapping[str, Value] = field(default_factory=dict)
    spread: bool = False
    """Whether `*` or `**` hides which parameter gets which argument."""

    @property
    def all(self) -> tuple[Value, ...]:
        """Return every argument."""
        return (*self.positional, *self.named.values())


Enter = Callable[[HostReference, Given, "Value | None"], Value]
"""Runs the body of a function or method with arguments and `self`, and returns its result."""


class Expressions:
    """Evaluates expressions. Lifetime: one analysis."""

    def __init__(
        self, module: Module, kernels: Mapping[str, KernelBody], memory: ProgramMemory, enter: Enter
    ) -> None:
        self._module, self._kernels = module, kernels
        self._memory, self._enter = memory, enter
        self._seen = self._depth = 0
        self.attributes: dict[tuple[str, str], Value] = {}
        """Attributes of instances, by class and name."""
        self._handlers: dict[type[ast.AST], Callable[..., Value]] = {
            ast.Name: self._name,
            ast.Attribute: self._attribute,
            ast.Subscript: self._subscript,
            ast.Call: self._call,
            ast.BinOp: lambda node, scope: self._arithmetic(
                node, node.op, [node.left, node.right], scope
            ),
            ast.UnaryOp: lambda node, scope: self._arithmetic(node, node.op, [node.operand], scope),
            ast.Compare: lambda node, scope: self._arithmetic(
                node, node.ops[0], [node.left, *node.comparators], scope
            ),
            ast.IfExp: lambda node, scope: self._any([node.body, node.orelse], scope),
            ast.Tuple: self._sequence,
            ast.List: self._sequence,
            ast.NamedExpr: self._named,
            ast.Lambda: lambda _node, _scope: NOTHING,
            ast.ListComp: self._comprehension,
            ast.GeneratorExp: self._comprehension,
            ast.SetComp: self._comprehension,
        }

    def value(self, node: ast.expr, scope: Scope) -> Value:
        """Return the value of an expression.

        Raises:
            AnalysisLimitError: the file exceeds a limit.
        """
        self._seen += 1
        if self._seen > MAX_NODES or self._depth > MAX_DEPTH:
            raise AnalysisLimitError
        self._depth += 1
        try:
            handler = self._handlers.get(type(node))
            if handler is not None:
                return handler(node, scope)
            inner = [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)]
            return self._any(inner, scope)
        finally:
            self._depth -= 1

    def _any(self, nodes: Sequence[ast.expr], scope: Scope) -> Value:
        return union(self.value(node, scope) for node in nodes)

    def _name(self, node: ast.Name, scope: Scope) -> Value:
        return scope.variables.get(node.id) or scope.outer.get(node.id, NOTHING)

    def _named(self, node: ast.NamedExpr, scope: Scope) -> Value:
        value = self.value(node.value, scope)
        if isinstance(node.target, ast.Name):
            scope.variables[node.target.id] = value
        return value

    def _sequence(self, node: ast.Tuple | ast.List, scope: Scope) -> Value:
        return Value(items=tuple(self.value(each, scope) for each in node.elts))

    def _comprehension(self, node: ast.ListComp, scope: Scope) -> Value:
        inner = scope.branch()
        for part in node.generators:
            source = self.value(part.iter, scope)
            for name in ast.walk(part.target):
                if isinstance(name, ast.Name):
                    inner.variables[name.id] = part_of(source)
        return self.value(node.elt, inner)

    def _attribute(self, node: ast.Attribute, scope: Scope) -> Value:
        if self._module.dotted(node) is not None or node.attr in SCALARS:
            return NOTHING
        owner = self.value(node.value, scope)
        if owner.reference is not None and owner.reference.kind == "instance":
            return self.attribute_of(owner.reference, node.attr)
        return Value(owner.cells, owner.tensor, owner.items)

    def attribute_of(self, instance: HostReference, name: str) -> Value:
        """Return an attribute of an instance; an unknown one has memory of its own."""
        key = (instance.name, name)
        if key not in self.attributes:
            self.attributes[key] = Value(self._memory.new().cells)
        return self.attributes[key]

    def _subscript(self, node: ast.Subscript, scope: Scope) -> Value:
        base = self.value(node.value, scope)
        if base.reference is not None and base.reference.kind == "kernel":
            return Value(reference=HostReference("launcher", base.reference.name))
        index = node.slice
        if base.items is not None and isinstance(index, ast.Constant):
            place = index.value
            if isinstance(place, int) and -len(base.items) <= place < len(base.items):
                return base.items[place]
        self.value(index, scope)
        return part_of(base)

    def _arithmetic(
        self, node: ast.expr, operator: ast.AST, operands: list[ast.expr], scope: Scope
    ) -> Value:
        values = [self.value(each, scope) for each in operands]
        name = ARITHMETIC.get(type(operator), "")
        computes = any(value.tensor for value in values) or name == "matmul"
        if name and computes:
            return self.operator(name, node.lineno, values)
        return Value(union(values).cells) if isinstance(node, ast.BinOp) else NOTHING

    def operator(self, name: str, line: int, values: Sequence[Value]) -> Value:
        """Record an operator, and return its result."""
        step = self._memory.add("operator", name, line, values)
        return self._memory.new(frozenset({step}))

    def _given(self, call: ast.Call, scope: Scope) -> Given:
        spread = any(isinstance(each, ast.Starred) for each in call.args)
        spread = spread or any(key.arg is None for key in call.keywords)
        return Given(
            tuple(self.value(each, scope) for each in call.args),
            {key.arg or "**": self.value(key.value, scope) for key in call.keywords},
            spread,
        )

    def _call(self, call: ast.Call, scope: Scope) -> Value:
        name = self._module.dotted(call.func)
        if name is not None:
            return self._library(name, call, self._given(call, scope))
        if isinstance(call.func, ast.Attribute):
            return self._method(call.func, call, scope)
        callee = self.value(call.func, scope)
        return self.apply(callee, call, self._given(call, scope))

    def _library(self, name: str, call: ast.Call, given: Given) -> Value:
        if is_jit(self._module, call):
            first = given.positional[0].reference if given.positional else None
            return Value(reference=HostReference("kernel", first.name)) if first else NOTHING
        if operator := computing_function(name):
            result = self.operator(operator, call.lineno, given.all)
            if "out" in given.named:
                self._memory.write([given.named["out"]], len(self._memory.steps) - 1)
            return result
        last = last_part(name)
        if name.startswith("torch.nn.") and last in CONTAINERS:
            inner = union(given.positional).items if len(given.positional) == 1 else None
            return Value(items=inner or given.positional, reference=HostReference("sequence"))
        if kind := computing_module(name):
            return Value(reference=HostReference("module", kind))
        if last in SCALARS:
            return NOTHING
        if last in ALLOCATIONS and name.startswith("torch."):
            return self._memory.new()
        own = name.startswith(("torch.", "triton.")) and not name.startswith("torch.ops.")
        return union(given.all) if own else self._foreign(last, call, given)

    def _foreign(self, name: str, call: ast.Call, given: Given) -> Value:
        """Record a call of unknown code as an operator if it gets a tensor: it may compute."""
        if any(value.tensor for value in given.all):
            return self.operator(name, call.lineno, given.all)
        return union(given.all)

    def _method(self, func: ast.Attribute, call: ast.Call, scope: Scope) -> Value:
        owner = self.value(func.value, scope)
        given = self._given(call, scope)
        reference = owner.reference
        if reference is not None:
            return self._referred(owner, reference, func.attr, call, given)
        if func.attr in SCALARS:
            return NOTHING
        if func.attr in ALLOCATIONS:
            return self._memory.new()
        if func.attr in ("append", "extend", "insert") and isinstance(func.value, ast.Name):
            scope.variables[func.value.id] = Value(union([owner, *given.all]).cells, items=None)
            return NOTHING
        if func.attr == "copy_":
            for cell in owner.cells:
                self._memory.writers[cell] = self._memory.steps_behind(given.all)
            return owner
        return self._tensor_method(owner, func.attr, call.lineno, given)

    def _tensor_method(self, owner: Value, name: str, line: int, given: Given) -> Value:
        operator = computing_method(name, on_tensor=owner.tensor)
        if not operator:
            both = union([owner, *given.all])
            return Value(both.cells, owner.tensor, None)
        result = self.operator(operator, line, [owner, *given.all])
        if name.endswith("_"):
            self._memory.write([owner], len(self._memory.steps) - 1)
            return owner
        return result

    def _referred(
        self, owner: Value, reference: HostReference, name: str, call: ast.Call, given: Given
    ) -> Value:
        """Call a method of something that is no tensor."""
        if reference.kind == "kernel" and name in ("run", "warmup"):
            return self._launch(reference.name, call, given)
        if reference.kind == "class":
            if name == "apply":
                # An autograd function gets a context before its arguments.
                given = Given((NOTHING, *given.positional), given.named, given.spread)
                name = "forward"
            return self._enter(HostReference("function", f"{reference.name}.{name}"), given, None)
        if reference.kind == "instance":
            held = self.attributes.get((reference.name, name))
            if held is not None:
                return self.apply(held, call, given)
            return self._enter(HostReference("function", f"{reference.name}.{name}"), given, owner)
        if name == "append" and reference.kind == "sequence":
            return NOTHING
        return self.apply(owner, call, given)

    def apply(self, callee: Value, call: ast.Call, given: Given) -> Value:
        """Call a value."""
        reference = callee.reference
        if reference is None or reference.kind == "kernel":
            name = call.func.id if isinstance(call.func, ast.Name) else "call"
            return union(given.all) if name in BUILTINS else self._foreign(name, call, given)
        if reference.kind == "launcher":
            return self._launch(reference.name, call, given)
        if reference.kind == "module":
            return self.operator(reference.name, call.lineno, given.all)
        if reference.kind == "sequence":
            result = union(given.all)
            for item in callee.items or ():
                result = self.apply(item, call, Given((result,)))
            return result
        return self._enter(reference, given, callee if reference.kind == "instance" else None)

    def _launch(self, name: str, call: ast.Call, given: Given) -> Value:
        """Record a launch, which reads and writes what its pointer parameters point to."""
        body = self._kernels.get(name, KernelBody(name, call.lineno, known=False))
        if given.spread or not body.known:
            read, written = list(given.all), list(given.all)
        else:
            bound = {**dict(zip(body.parameters, given.positional, strict=False)), **given.named}
            # A kernel that stores may leave earlier results in place, so it also reads.
            read = [value for key, value in bound.items() if key in body.pointers]
            written = [value for key, value in bound.items() if key in body.written]
        step = self._memory.add("launch", name, call.lineno, read)
        self._memory.write(written, step)
        return NOTHING


def part_of(value: Value) -> Value:
    """Return any part of a value: a view of a tensor, or an item of a list."""
    if value.items:
        return union(value.items)
    return Value(value.cells, value.tensor)
