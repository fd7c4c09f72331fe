"""Names of torch calls in host code: which compute, which allocate, and which return no tensor."""

from __future__ import annotations

import ast

from tilewright.languages.operator_names import (
    COMPUTE_MODULES,
    COMPUTE_OPS,
    METHOD_OPS,
    TORCH_NAMESPACES,
    name_set,
)

ALLOCATIONS = name_set(
    """
    arange empty empty_like empty_strided eye full full_like linspace new_empty new_empty_strided
    new_full new_ones new_tensor new_zeros ones ones_like rand rand_like randint randint_like randn
    randn_like randperm tensor zeros zeros_like
    """
)
"""Functions and methods that return a new tensor with no value of another one."""
SCALARS = name_set(
    """
    can_device_access_peer current_stream data_ptr device dim dtype element_size get_device
    get_device_capability get_device_properties  is_available is_complex
    is_contiguous is_cuda is_floating_point is_grad_enabled is_sparse itemsize layout nbytes
    ndim ndimension nelement numel requires_grad shape size storage_offset stride tolist type
    untyped_storage finfo iinfo promote_types result_type synchronize is_tensor
    """
)
"""Attributes, methods and functions whose result is no tensor."""
ARITHMETIC: dict[type[ast.AST], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.FloorDiv: "div",
    ast.Mod: "remainder",
    ast.Pow: "pow",
    ast.MatMult: "matmul",
    ast.BitAnd: "bitwise_and",
    ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor",
    ast.LShift: "shift",
    ast.RShift: "shift",
    ast.USub: "neg",
    ast.Invert: "bitwise_not",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Eq: "eq",
    ast.NotEq: "ne",
}
"""Python's operators, and the operator of torch that each one calls on a tensor."""


def last_part(name: str) -> str:
    """Return the last part of a dotted name."""
    return name.rpartition(".")[2]


def computing_function(name: str) -> str:
    """Return the computing operator that a dotted name means; empty if it means none."""
    for start in TORCH_NAMESPACES:
        if name.startswith(start):
            rest = name.removeprefix(start).removesuffix(".default").rstrip("_")
            return rest if rest in COMPUTE_OPS else ""
    return ""


def computing_module(name: str) -> str:
    """Return the computing module of torch.nn that a dotted name means, in lower case."""
    kind = last_part(name)
    if name.startswith("torch.nn.") and kind.startswith(COMPUTE_MODULES):
        return kind.lower()
    return ""


def computing_method(name: str, *, on_tensor: bool) -> str:
    """Return the computing operator that a method means.

    On an object of unknown type a name that other classes use too means none.
    """
    short = name.rstrip("_")
    return short if short in (COMPUTE_OPS if on_tensor else METHOD_OPS) else ""
