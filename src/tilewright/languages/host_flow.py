"""The flow of data through host code: which operators and launches feed which, up to the result.

Functions of the file are followed where they are called. Both branches of a condition are taken,
and a loop runs once.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilewright.languages.host_calls import ARITHMETIC
from tilewright.languages.host_expressions import (
    AnalysisLimitError,
    Expressions,
    Given,
    Scope,
    part_of,
)
from tilewright.languages.host_values import (
    NOTHING,
    HostReference,
    HostStep,
    ProgramMemory,
    Value,
    union,
)
from tilewright.languages.kernel_bodies import kernel_bodies
from tilewright.languages.syntax import Module, names_stored

MAX_CALLS = 12
"""Most nested calls of functions of the file that are followed."""
MAX_ITEMS = 16
"""Most items of a list over which a loop is unrolled."""
_MODULE_ENTRY = "ModelNew"
_SCALAR_TYPES = ("int", "float", "bool", "str", "tuple", "list", "dict")
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class HostFlow:
    """The steps of one entry point, in the order of their calls."""

    entry: str
    steps: tuple[HostStep, ...] = ()
    returned: tuple[int, ...] = ()
    """Steps that wrote the result last."""

    def on_output_path(self) -> tuple[HostStep, ...]:
        """Return the steps on which the result depends, in order."""
        found: set[int] = set()
        waiting = list(self.returned)
        while waiting:
            number = waiting.pop()
            if number not in found:
                found.add(number)
                waiting.extend(self.steps[number].reads)
        return tuple(self.steps[number] for number in sorted(found))


def host_flows(module: Module, entry: str = "") -> tuple[HostFlow, ...]:
    """Return the flow of each entry point of a file.

    Without `entry` these are `ModelNew`, or the functions and modules that no other one uses. A
    file that exceeds a limit of the analysis has no steps.
    """
    found = []
    for name in _entries(module, entry):
        try:
            found.append(_Interpreter(module).flow(name))
        except AnalysisLimitError:
            found.append(HostFlow(name))
    return tuple(found)


def _definitions(module: Module) -> dict[str, _Function | ast.ClassDef]:
    return {
        node.name: node
        for node in module.tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }


def _entries(module: Module, entry: str) -> list[str]:
    kernels = kernel_bodies(module)
    own = {name: node for name, node in _definitions(module).items() if name not in kernels}
    for wanted in (entry, _MODULE_ENTRY):
        if wanted in own:
            return [wanted]
    used: set[str] = set()
    for name, node in _definitions(module).items():
        names = (each.id for each in ast.walk(node) if isinstance(each, ast.Name))
        used |= {each for each in names if each != name}
    return [name for name in own if name not in used] or list(own)


class _Interpreter:
    """Runs the statements of one entry point. Lifetime: one analysis."""

    def __init__(self, module: Module) -> None:
        self._memory = ProgramMemory()
        self._definitions = _definitions(module)
        kernels = kernel_bodies(module)
        self._expressions = Expressions(module, kernels, self._memory, self._enter)
        self._active: list[ast.AST] = []
        self._closures: dict[str, tuple[_Function, Scope]] = {}
        self._file = Scope()
        for name, node in self._definitions.items():
            kind = "kernel" if name in kernels else "function"
            if isinstance(node, ast.ClassDef):
                kind = "class"
            self._file.variables[name] = Value(reference=HostReference(kind, name))  # type: ignore[arg-type]
        self._run([node for node in module.tree.body if not _is_script(node)], self._file)
        # Steps at the top level, such as a test's, are no part of an entry point.
        self._memory.steps.clear()
        self._memory.writers[:] = [frozenset()] * len(self._memory.writers)

    def flow(self, entry: str) -> HostFlow:
        """Return the flow of an entry point."""
        node = self._definitions[entry]
        instance: Value | None = None
        method: _Function | None = None
        if isinstance(node, ast.ClassDef):
            instance = self._instance(entry, Given())
            method = self._method(entry, "forward") or self._method(entry, "__call__")
        else:
            method = node
        if method is None:
            return HostFlow(entry)
        skipped = 1 if instance is not None else 0
        parameters = [self._parameter(each) for each in _parameters(method)[skipped:]]
        result = self._invoke(method, Given(tuple(parameters)), instance, self._file.variables)
        outputs = [result] if self._memory.steps_behind([result]) else parameters
        return HostFlow(
            entry,
            tuple(self._memory.steps),
            tuple(sorted(self._memory.steps_behind(outputs))),
        )

    def _parameter(self, parameter: ast.arg) -> Value:
        noted = ast.unparse(parameter.annotation) if parameter.annotation is not None else ""
        return NOTHING if noted.startswith(_SCALAR_TYPES) else self._memory.new()

    def _enter(self, reference: HostReference, given: Given, instance: Value | None) -> Value:
        """Run what a reference names; an unknown one may return any of its arguments."""
        owner, _, name = reference.name.rpartition(".")
        if reference.kind == "class" and not owner:
            return self._instance(reference.name, given)
        if reference.kind == "instance":
            method = self._method(reference.name, "forward") or self._method(
                reference.name, "__call__"
            )
            return self._called(method, given, instance)
        if reference.name in self._closures:
            function, scope = self._closures[reference.name]
            return self._invoke(function, given, None, {**scope.outer, **scope.variables})
        node = self._method(owner, name) if owner else self._definitions.get(name)
        return self._called(node, given, instance)

    def _called(self, node: ast.AST | None, given: Given, instance: Value | None) -> Value:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return union(given.all)
        return self._invoke(node, given, instance, self._file.variables)

    def _instance(self, name: str, given: Given) -> Value:
        instance = Value(reference=HostReference("instance", name))
        start = self._method(name, "__init__")
        if start is not None:
            self._invoke(start, given, instance, self._file.variables)
        return instance

    def _method(self, owner: str, name: str) -> _Function | None:
        """Return a method of a class of the file, or of its bases there."""
        waiting, seen = [owner], set[str]()
        while waiting:
            each = waiting.pop(0)
            node = self._definitions.get(each)
            if each in seen or not isinstance(node, ast.ClassDef):
                continue
            seen.add(each)
            for item in node.body:
                if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef) and item.name == name:
                    return item
            waiting += [ast.unparse(base) for base in node.bases]
        return None

    def _invoke(
        self, node: _Function, given: Given, instance: Value | None, outer: dict[str, Value]
    ) -> Value:
        if node in self._active or len(self._active) >= MAX_CALLS:
            return union(given.all)
        scope = Scope(outer=outer)
        names = [each.arg for each in _parameters(node)]
        static = any(ast.unparse(each) == "staticmethod" for each in node.decorator_list)
        if instance is not None and not static and names:
            scope.variables[names.pop(0)] = instance
        if given.spread:
            scope.variables |= dict.fromkeys(names, part_of(Value(items=given.all)))
        scope.variables |= dict(zip(names, given.positional, strict=False))
        scope.variables |= {key: value for key, value in given.named.items() if key in names}
        if node.args.vararg is not None:
            rest = given.positional[len(names) :]
            scope.variables[node.args.vararg.arg] = Value(items=rest)
        self._active.append(node)
        try:
            self._run(node.body, scope)
        finally:
            self._active.pop()
        return union(scope.returns)

    def _run(self, block: Sequence[ast.stmt], scope: Scope) -> None:
        for statement in block:
            self._statement(statement, scope)

    def _statement(self, node: ast.stmt, scope: Scope) -> None:
        value = self._expressions.value
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if node.value is not None:
                self._assign(targets, node.value, scope)
        elif isinstance(node, ast.AugAssign):
            self._update(node, scope)
        elif isinstance(node, ast.Return):
            if node.value is not None:
                scope.returns.append(value(node.value, scope))
        elif isinstance(node, ast.Expr):
            value(node.value, scope)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if node.name not in self._definitions or scope is not self._file:
                self._closures[node.name] = (node, scope)
                scope.variables[node.name] = Value(reference=HostReference("function", node.name))
        else:
            self._compound(node, scope)

    def _compound(self, node: ast.stmt, scope: Scope) -> None:
        if isinstance(node, ast.If):
            self._expressions.value(node.test, scope)
            self._branches([node.body, node.orelse], scope)
        elif isinstance(node, ast.For | ast.AsyncFor):
            self._loop(node, scope)
        elif isinstance(node, ast.While):
            self._run([*node.body, *node.orelse], scope)
        elif isinstance(node, ast.With | ast.AsyncWith):
            for item in node.items:
                found = self._expressions.value(item.context_expr, scope)
                if item.optional_vars is not None:
                    self._bind(item.optional_vars, found, scope)
            self._run(node.body, scope)
        elif isinstance(node, ast.Try):
            self._branches([node.body, *(each.body for each in node.handlers)], scope)
            self._run([*node.orelse, *node.finalbody], scope)
        elif isinstance(node, ast.Match):
            self._branches([each.body for each in node.cases], scope)

    def _branches(self, blocks: Sequence[Sequence[ast.stmt]], scope: Scope) -> None:
        """Run each block from the same state, and let every result be possible."""
        writers = self._memory.writers
        before, ends = list(writers), []
        for block in blocks:
            inner = scope.branch()
            writers[: len(before)] = before
            self._run(block, inner)
            ends.append((inner, list(writers)))
        for cell in range(len(before)):
            writers[cell] = frozenset().union(*(after[cell] for _, after in ends))
        names = dict.fromkeys(name for inner, _ in ends for name in inner.variables)
        for name in names:
            found = [inner.variables[name] for inner, _ in ends if name in inner.variables]
            scope.variables[name] = union(dict.fromkeys(found))

    def _loop(self, node: ast.For | ast.AsyncFor, scope: Scope) -> None:
        source = self._expressions.value(node.iter, scope)
        items = source.items[:MAX_ITEMS] if source.items else (part_of(source),)
        for item in items:
            self._bind(node.target, item, scope)
            self._run(node.body, scope)
        self._run(node.orelse, scope)

    def _assign(self, targets: Sequence[ast.expr], node: ast.expr, scope: Scope) -> None:
        first = len(self._memory.steps)
        value = self._expressions.value(node, scope)
        name = targets[0].id if isinstance(targets[0], ast.Name) else ""
        for number in self._memory.steps_behind([value]):
            step = self._memory.steps[number]
            if number >= first and step.kind == "operator" and not step.target:
                self._memory.steps[number] = replace(step, target=name)
        for target in targets:
            self._bind(target, value, scope)

    def _bind(self, target: ast.expr, value: Value, scope: Scope) -> None:
        if isinstance(target, ast.Name):
            scope.variables[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            parts = value.items or ()
            matched = len(parts) == len(target.elts)
            for place, each in enumerate(target.elts):
                self._bind(each, parts[place] if matched else part_of(value), scope)
        elif isinstance(target, ast.Attribute):
            owner = self._expressions.value(target.value, scope)
            if owner.reference is not None and owner.reference.kind == "instance":
                self._expressions.attributes[owner.reference.name, target.attr] = value
        elif isinstance(target, ast.Subscript):
            base = self._expressions.value(target.value, scope)
            for cell in base.cells:
                self._memory.writers[cell] |= self._memory.steps_behind([value])

    def _update(self, node: ast.AugAssign, scope: Scope) -> None:
        before = self._expressions.value(node.target, scope)
        change = self._expressions.value(node.value, scope)
        name = ARITHMETIC.get(type(node.op), "")
        if name and (before.tensor or change.tensor):
            result = self._expressions.operator(name, node.lineno, [before, change])
            self._memory.write([before], len(self._memory.steps) - 1)
            for each in names_stored(node.target):
                scope.variables[each] = before if before.cells else result


def _parameters(node: _Function) -> list[ast.arg]:
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


def _is_script(node: ast.stmt) -> bool:
    """Tell whether a statement runs only if the file is the program, or is a definition."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return True
    return isinstance(node, ast.If) and any(
        isinstance(each, ast.Name) and each.id == "__name__" for each in ast.walk(node.test)
    )
