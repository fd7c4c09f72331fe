"""One call of the candidate: arguments from the arena, the call, and where its outputs lie.

The runner process runs this code together with the candidate, which can change it. It gains
nothing: the judge reads the bytes out of this process itself. The names that a call uses are bound
before the candidate is loaded, so that an honest patch of torch changes nothing here.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch

from tilewright.wire.cuda_driver import Block
from tilewright.wire.names import NUMBERS
from tilewright.wire.sync_page import MAX_OUTPUTS
from tilewright.wire.tensors import DTYPES, Arena, build, dtype_name, elements

_clone = torch.Tensor.clone
_contiguous = torch.Tensor.contiguous
_detach = torch.Tensor.detach
_is_contiguous = torch.Tensor.is_contiguous
_stride = torch.Tensor.stride
_no_grad = torch.no_grad
_seed = torch.default_generator.manual_seed
_seed_device = torch.cuda.manual_seed
_set_precision = torch.set_float32_matmul_precision
_randn = torch.randn
_tensor = torch.tensor
_grad = torch.autograd.grad
disable_gc, enable_gc = gc.disable, gc.enable

Function = Callable[..., Any]
Watch = AbstractContextManager[Any]
Answer = tuple[Any, list[Any], str]
"""The output of a call, its leaves as the judge can read them, and a text for its structure."""

Span = tuple[int, int]
"""First address of a tensor's bytes, and the first one behind them."""

MAX_DIMENSIONS = 32
"""Sizes of a reported shape; no operator of torch makes more dimensions."""


@dataclass(frozen=True)
class PreparedCall:
    """The arguments of one call, and where gradients flow."""

    args: tuple[Any, ...]
    grads: tuple[int, ...]
    grad_outputs: tuple[torch.Tensor, ...]
    first_byte: int = 0
    """Address of the input arena, to tell whether an output is a view of an input."""
    input_bytes: int = 0
    writable: tuple[Span, ...] = ()
    """Addresses of the inputs that the call may overwrite, where its outputs may lie too."""
    shared: frozenset[tuple[int, int]] = frozenset()
    """Places of outputs that may have one memory, as the reference's have."""
    strides: tuple[list[int] | None, ...] = ()
    """Strides of the reference's outputs that are dense in an order of their own, by place."""


TimedAnswer = tuple[PreparedCall, list[Any], str, Any]
"""A call, its leaves and structure, and a self-reported time or, of `waited`, peak of memory."""


def arguments(
    fields: dict[str, Any], inputs: Arena, base: int, first_byte: int = 0, input_bytes: int = 0
) -> PreparedCall:
    """Build a call's arguments as views of the arena, whose address and size may be given."""
    grads = tuple(fields.get("grads", ()))
    grad_outputs = tuple(build(fields["grad_outputs"], inputs, base)) if grads else ()
    first = first_byte + base
    return PreparedCall(
        tuple(build(fields["args"], inputs, base)),
        grads,
        grad_outputs,
        first_byte,
        input_bytes,
        writable=tuple((first + start, first + stop) for start, stop in fields.get("writable", ())),
        shared=frozenset((one, other) for one, other in fields.get("shared", ())),
        strides=tuple(fields.get("strides", ())),
    )


def prepare(fields: dict[str, Any], inputs: Arena) -> PreparedCall:
    """Build a call's arguments in a process that is in the same state at each call."""
    # On processors with AVX-512, earlier work may leave a process in a state in which some
    # operators take three times as long. 16 or more random numbers end that for every runner.
    _randn(16)
    # Here and not in `run`: seeding takes longer than a small kernel, and no clock runs yet.
    _seed(fields["forward_seed"])
    if isinstance(inputs, Block):
        _seed_device(fields["forward_seed"])
        first_byte = inputs.address
    else:
        # This flag of the process changes how matrix products are computed. Every call begins with
        # the same value; a candidate that needs another one sets it within the call.
        _set_precision("highest")
        first_byte = elements(inputs, torch.uint8, 1).data_ptr()
    return arguments(fields, inputs, fields["base"], first_byte, len(inputs))


def flatten(value: Any) -> tuple[list[Any], str]:  # noqa: ANN401
    """Return the leaves of an output and a text for its structure (`1`, `3`, `a,b`).

    A number is a tensor without dimensions, on the host. `None` is no output.
    """
    if value is None:
        return [], "1"
    if type(value) in NUMBERS:
        return [_tensor(value)], "1"
    if isinstance(value, dict):
        leaves = [leaf for item in value.values() for leaf in flatten(item)[0]]
        return leaves, ",".join(str(key) for key in value)
    if isinstance(value, list | tuple):
        leaves = [leaf for item in value for leaf in flatten(item)[0]]
        return leaves, str(len(leaves))
    return [value], "1"


def run(function: Function, call: PreparedCall) -> Any:  # noqa: ANN401
    """Call `function`; with gradients, return its outputs followed by the gradients."""
    if not call.grads:
        with _no_grad():
            return function(*call.args)
    if getattr(function, "computes_gradients", False):
        return function(*call.args, *call.grad_outputs)
    args = list(call.args)
    for index in call.grads:
        args[index] = _detach(args[index]).requires_grad_(True)
    leaves, _ = flatten(function(*args))
    floating = [leaf for leaf in leaves if leaf.is_floating_point() or leaf.is_complex()]
    gradients = _grad(floating, [args[index] for index in call.grads], call.grad_outputs)
    return (*leaves, *gradients)


def deliver(
    output: Any,  # noqa: ANN401
    held: list[Span] | None = None,
    call: PreparedCall | None = None,
) -> tuple[list[Any], str]:
    """Return an output's leaves, dense as the judge reads them, and a text for its structure.

    A part of the call: a candidate that returns a view pays for the copy of its caller. So does
    one that returns memory of an earlier output, at an address in `held`. An output with the
    strides of the reference's output of the same `call` is dense already.
    """
    leaves, structure = flatten(output)
    delivered = []
    for place, leaf in enumerate(leaves[:MAX_OUTPUTS]):
        if is_plain(leaf):
            leaf = _dense(leaf, place, call)
            start = leaf.data_ptr()
            if held and any(start < stop and first < start + leaf.nbytes for first, stop in held):
                leaf = _clone(leaf)
        delivered.append(leaf)
    return delivered, structure


def copy_of(leaf: torch.Tensor) -> torch.Tensor:
    """Return a copy that the caller makes of an output."""
    return _clone(leaf)


def lies_in_writable(leaf: Any, call: PreparedCall) -> bool:  # noqa: ANN401
    """Tell whether a dense output lies in one input that the call may overwrite."""
    if not is_plain(leaf):
        return False
    first, last = leaf.data_ptr(), leaf.data_ptr() + leaf.nbytes
    return any(start <= first and last <= stop for start, stop in call.writable)


def spans(leaves: list[Any]) -> list[Span]:
    """Return where plain tensors lie."""
    return [
        (leaf.data_ptr(), leaf.data_ptr() + leaf.nbytes)
        for leaf in leaves
        if is_plain(leaf) and leaf.nbytes
    ]


def is_plain(leaf: Any) -> bool:  # noqa: ANN401
    """Tell whether a leaf is a strided tensor, and no object that only behaves like one."""
    kind = type(leaf)
    return (
        (kind is torch.Tensor or kind is torch.nn.Parameter)
        and leaf.device.type in ("cpu", "cuda")
        and leaf.layout == torch.strided
        and dtype_name(leaf.dtype) in DTYPES
    )


def _dense(leaf: torch.Tensor, place: int, call: PreparedCall | None) -> torch.Tensor:
    if leaf.is_conj() or leaf.is_neg():
        leaf = leaf.resolve_conj().resolve_neg()
    leaf = _detach(leaf)
    if call is not None and place < len(call.strides):
        strides = call.strides[place]
        if strides is not None and has_strides(leaf, strides):
            # A copy of a view of an input keeps its order: to change it takes longer.
            return _clone(leaf) if _is_input(leaf, call) else leaf
    return _contiguous(leaf)


def has_strides(leaf: torch.Tensor, strides: list[int]) -> bool:
    """Tell whether a tensor has these strides, where a dimension has more than one element."""
    found = _stride(leaf)
    return len(found) == len(strides) and all(
        one == other or size == 1
        for one, other, size in zip(found, strides, leaf.shape, strict=True)
    )


def addresses(leaves: list[Any]) -> list[int]:
    """Return the address of each leaf's bytes; 0 for a leaf that is no plain tensor."""
    return [leaf.data_ptr() if is_plain(leaf) else 0 for leaf in leaves]


def permuted_places(leaves: list[Any]) -> int:
    """Return a number whose bits are set at the places of delivered leaves in another order."""
    found = 0
    for place, leaf in enumerate(leaves):
        if is_plain(leaf) and not _is_contiguous(leaf):
            found |= 1 << place
    return found


def describe(
    leaves: list[Any], structure: str, call: PreparedCall, moved: set[int]
) -> list[dict[str, Any]]:
    """Return a self-reported description of each output; an unreadable one has no `address`.

    `moved` are the places of outputs that were moved from the host.
    """
    described = [_describe_one(leaf, call) for leaf in leaves]
    for place in moved:
        described[place]["device"] = "cpu"
    if described:
        described[0]["structure"] = structure[:200]
    return described


def _describe_one(leaf: Any, call: PreparedCall) -> dict[str, Any]:  # noqa: ANN401
    kind = type(leaf)
    if kind is not torch.Tensor and kind is not torch.nn.Parameter:
        return {"type": f"{kind.__module__}.{kind.__qualname__}"[:200]}
    item: dict[str, Any] = {
        "type": "tensor",
        "dtype": dtype_name(leaf.dtype),
        "shape": list(leaf.shape)[:MAX_DIMENSIONS],
        "device": str(leaf.device),
        "layout": str(leaf.layout).removeprefix("torch."),
    }
    if is_plain(leaf):
        item |= {"address": leaf.data_ptr(), "alias": _is_input(leaf, call)}
    return item


def mark_views(described: list[dict[str, Any]], output: Any, call: PreparedCall) -> None:  # noqa: ANN401
    """Mark outputs that were views of an input before they were made dense."""
    for item, leaf in zip(described, flatten(output)[0], strict=False):
        if is_plain(leaf) and _is_input(leaf, call):
            item["alias"] = True


def _is_input(leaf: torch.Tensor, call: PreparedCall) -> bool:
    return call.first_byte <= leaf.data_ptr() < call.first_byte + call.input_bytes
