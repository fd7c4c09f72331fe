"""Computing operators and modules of torch in Python source, and fallbacks that use them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tilewright.languages.extensions import extension_builder
from tilewright.languages.operator_names import (
    COMPUTE_MODULES,
    COMPUTE_OPS,
    METHOD_OPS,
    TORCH_NAMESPACES,
)
from tilewright.languages.syntax import Fact, Module
from tilewright.languages.triton_kernels import kernel_nodes


def torch_facts(module: Module) -> Iterator[Fact]:
    """Yield computing operators that are called, and computing modules that are constructed."""
    reader = _Reader(module)
    for node in module.nodes:
        if name := reader.operator(node):
            yield Fact("torch_ops", name, node.lineno)  # type: ignore[attr-defined]
        if isinstance(node, ast.Call) and (name := _torch_module(module, node)):
            yield Fact("torch_modules", name, node.lineno)


def fallback_facts(module: Module) -> Iterator[Fact]:
    """Yield `try` blocks with a handler that computes in torch, directly or through one call."""
    reader = _Reader(module)
    computing = {
        node.name: name
        for node in module.nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (name := reader.first_operator(node.body))
    }
    for node in (each for each in module.nodes if isinstance(each, ast.ExceptHandler)):
        called = (_last_name(each.func) for each in _nodes_of(node.body) if type(each) is ast.Call)
        by_call = next((computing[name] for name in called if name in computing), None)
        if name := reader.first_operator(node.body) or by_call:
            yield Fact("fallbacks", name, node.lineno)


class _Reader:
    """Tells torch's operators from the candidate's own functions of the same name."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._inside_kernels = kernel_nodes(module)
        self._modules: dict[str, str] = {}
        self._own: set[str] = set()
        for node in module.nodes:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                name = _torch_module(module, node.value)
                if name is not None:
                    targets = [each for each in node.targets if isinstance(each, ast.Attribute)]
                    self._modules.update({target.attr: name for target in targets})
                if extension_builder(module, node.value) is not None:
                    self._own |= {key for key in map(_last_name, node.targets) if key}

    def operator(self, node: ast.AST) -> str | None:
        """Return the operator that `node` calls: `softmax`, `@`, or `nn.Linear` for a module."""
        if id(node) in self._inside_kernels:
            return None
        if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.MatMult):
            return "matmul"
        if not isinstance(node, ast.Call):
            return None
        name = self._module.dotted(node.func)
        if name is not None:
            return _named_operator(name)
        return self._method(node.func) if isinstance(node.func, ast.Attribute) else None

    def _method(self, func: ast.Attribute) -> str | None:
        owner = func.value
        if isinstance(owner, ast.Name) and owner.id == "self":
            return self._modules.get(func.attr)
        if _last_name(owner) in self._own or isinstance(owner, ast.Constant):
            return None
        name = func.attr.rstrip("_")
        return name if name in METHOD_OPS else None

    def first_operator(self, body: Sequence[ast.stmt]) -> str | None:
        return next(filter(None, map(self.operator, _nodes_of(body))), None)


def _nodes_of(body: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    return (node for statement in body for node in ast.walk(statement))


def _last_name(node: ast.expr) -> str | None:
    """Return the name of `name` and of `anything.name`."""
    return node.id if isinstance(node, ast.Name) else getattr(node, "attr", None)


def _named_operator(name: str) -> str | None:
    for start in TORCH_NAMESPACES:
        if name.startswith(start):
            rest = name.removeprefix(start).removesuffix(".default").rstrip("_")
            return rest if rest in COMPUTE_OPS else None
    return None


def _torch_module(module: Module, call: ast.Call) -> str | None:
    name = module.dotted(call.func)
    if name is None or not name.startswith("torch.nn."):
        return None
    kind = name.rpartition(".")[2]
    return f"nn.{kind}" if kind.startswith(COMPUTE_MODULES) else None
