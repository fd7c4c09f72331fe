"""One call of the candidate: arguments from the arena, the call, outputs into the slot.

The names used while the candidate runs are bound before its source is loaded, so that patching
torch afterwards changes nothing here. It could change nothing of weight anyway: what is judged
are the bytes in the slot.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from tilewright.contestant.tensors import ALIGNMENT, DTYPES, align, build, dtype_name

_copy = torch.Tensor.copy_
_detach = torch.Tensor.detach
_no_grad = torch.no_grad
_seed = torch.default_generator.manual_seed
_grad = torch.autograd.grad


class RoomError(Exception):
    """Something is larger than the slot that was made for it."""


@dataclass(frozen=True)
class Call:
    """What one call needs: arguments, where gradients flow, and where outputs go."""

    args: tuple[Any, ...]
    grads: tuple[int, ...]
    grad_outputs: tuple[torch.Tensor, ...]
    out_offset: int
    out_capacity: int
    first_byte: int
    """Address of the input arena, to tell whether an output is a view of an input."""
    input_bytes: int


def prepare(fields: dict[str, Any], inputs: Any) -> Call:  # noqa: ANN401 - a writable buffer
    """Build a call's arguments as views of the arena, or of its mirror."""
    base = fields["base"]
    # Here and not in `run`: seeding takes longer than a small kernel, and no clock runs yet.
    _seed(fields["forward_seed"])
    return Call(
        args=tuple(build(fields["args"], inputs, base)),
        grads=tuple(fields.get("grads", ())),
        grad_outputs=tuple(build(fields["grad_outputs"], inputs, base))
        if fields.get("grads")
        else (),
        out_offset=fields["out"],
        out_capacity=fields["capacity"],
        first_byte=torch.frombuffer(inputs, dtype=torch.uint8, count=1).data_ptr(),
        input_bytes=len(inputs),
    )


def flatten(value: Any) -> tuple[list[Any], str]:  # noqa: ANN401
    """Return the leaves of an output and a word for its structure (`1`, `3`, `a,b`)."""
    if isinstance(value, dict):
        return [value[key] for key in value], ",".join(str(key) for key in value)
    if isinstance(value, list | tuple):
        leaves: list[Any] = []
        for item in value:
            leaves.extend(flatten(item)[0])
        return leaves, str(len(leaves))
    return [value], "1"


def run(function: Callable[..., Any], call: Call) -> Any:  # noqa: ANN401
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
    floating = [leaf for leaf in leaves if leaf.is_floating_point()]
    gradients = _grad(floating, [args[index] for index in call.grads], call.grad_outputs)
    return (*leaves, *gradients)


def store(output: Any, call: Call, outputs: mmap.mmap) -> list[dict[str, Any]]:  # noqa: ANN401
    """Copy every output into the slot; return what each one is, by its own words.

    An output that cannot be copied (no plain tensor, or no room) is described without `offset`.
    """
    leaves, structure = flatten(output)
    offset, end = call.out_offset, call.out_offset + call.out_capacity
    described: list[dict[str, Any]] = []
    for leaf in leaves[:64]:
        item, offset = _store_one(leaf, offset, end, call, outputs)
        described.append(item)
    if described:
        described[0]["structure"] = structure[:200]
    return described


def _store_one(
    leaf: Any,  # noqa: ANN401
    offset: int,
    end: int,
    call: Call,
    outputs: mmap.mmap,
) -> tuple[dict[str, Any], int]:
    kind = type(leaf)
    if kind is not torch.Tensor and kind is not torch.nn.Parameter:
        return {"type": f"{kind.__module__}.{kind.__qualname__}"[:200]}, offset
    item: dict[str, Any] = {
        "type": "tensor",
        "dtype": dtype_name(leaf.dtype),
        "shape": list(leaf.shape)[:32],
        "device": str(leaf.device),
        "layout": str(leaf.layout).removeprefix("torch."),
    }
    if leaf.device.type != "cpu" or leaf.layout != torch.strided or item["dtype"] not in DTYPES:
        return item, offset
    size = leaf.numel() * leaf.element_size()
    offset = align(offset)
    if offset + size + ALIGNMENT > end:
        return item, offset
    item["offset"] = offset
    item["alias"] = call.first_byte <= leaf.data_ptr() < call.first_byte + call.input_bytes
    if size:
        flat = torch.frombuffer(outputs, dtype=leaf.dtype, count=leaf.numel(), offset=offset)
        _copy(flat.view(leaf.shape), _detach(leaf))
    return item, offset + size
