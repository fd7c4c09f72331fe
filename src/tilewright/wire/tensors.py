"""Layout of values in shared memory: a JSON tree, with tensors as offsets into an arena.

The judge lays values out, and the runner builds its arguments from the tree.

    tensor   {"t": "tensor", "dtype": "float32", "shape": [2, 3], "stride": [3, 1], "offset": 64}
    others   {"t": "list" | "tuple", "v": [...]}, {"t": "dict", "v": [[key, tree], ...]},
             {"t": "value", "v": null | bool | int | float | str}, {"t": "float", "v": "nan"},
             {"t": "dtype", "v": "float32"}, {"t": "triton_dtype", "v": "fp8e5"},
             {"t": "device", "v": "cuda:0"}, {"t": "object", "v": [[name, tree], ...]}

An object, such as a module or a configuration, arrives as its public attributes (`Attributes`).
The receiver has none of the sender's classes.

Offsets are in bytes and multiples of `ALIGNMENT`. A gap of at least `GUARD_BYTES` separates two
tensors. No process may write it, so the judge sees writes beyond a tensor.
"""

from __future__ import annotations

import mmap
from types import SimpleNamespace
from typing import Any, NoReturn

import torch

from tilewright.wire.cuda_driver import Block

ALIGNMENT = 256
"""Bytes: vector loads and tensor descriptors of CUDA need at most this alignment."""
GUARD_BYTES = 256
"""Bytes before, between and after tensors; a write beyond a tensor by one vector falls in them."""

_NAMES = (
    "float32 float64 float16 bfloat16 int8 int16 int32 int64 uint8 bool complex64 complex128 "
    "float8_e4m3fn float8_e5m2"
)
DTYPES: dict[str, torch.dtype] = {name: getattr(torch, name) for name in _NAMES.split()}


TRITON_DTYPE = ("triton.language.core", "dtype")
"""Module and name of Triton's class of data types, which is not imported for a comparison."""


class LayoutError(ValueError):
    """A value that cannot be laid out, or a description that does not fit its arena."""


def dtype_name(dtype: torch.dtype) -> str:
    """Return the name under which a dtype travels, e.g. `float32`."""
    return str(dtype).removeprefix("torch.")


def span(shape: list[int] | torch.Size, stride: list[int] | tuple[int, ...]) -> int:
    """Return the number of elements from the first to the last of a strided tensor, inclusive."""
    if any(size == 0 for size in shape):
        return 0
    return 1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=True))


def permuted_strides(value: torch.Tensor) -> list[int] | None:
    """Return the strides, in elements, of a tensor that is dense in an order of its own.

    Its elements fill their memory without gaps, as those of a transposed matrix do. `None`: it is
    contiguous, or not dense.
    """
    if value.layout != torch.strided or value.is_contiguous():
        return None
    expected = 1
    for step, size in sorted(zip(value.stride(), value.shape, strict=True)):
        if size != 1:
            if step != expected:
                return None
            expected *= size
    return list(value.stride())


class Attributes(SimpleNamespace):
    """The public attributes of an object of another process, without its class and methods."""

    def __call__(self, *_: object, **__: object) -> NoReturn:
        """Say why the object cannot be called."""
        raise TypeError(f"an input that is an object cannot be called: it arrives as {self._has()}")

    def __getattr__(self, name: str) -> NoReturn:
        """Say why the attribute is missing."""
        raise AttributeError(
            f"an input that is an object has no {name!r}: it arrives as {self._has()}"
        )

    def _has(self) -> str:
        return f"its public attributes alone ({', '.join(vars(self)) or 'none'})"


Arena = mmap.mmap | Block


def elements(arena: Arena, dtype: torch.dtype, count: int, offset: int = 0) -> torch.Tensor:
    """Return `count` elements of an arena from `offset` bytes on, as a flat tensor over them."""
    if isinstance(arena, Block):
        return arena.elements(dtype, count, offset)
    return torch.frombuffer(arena, dtype=dtype, count=count, offset=offset)


def view(arena: Arena, item: dict[str, Any], base: int) -> torch.Tensor:
    """Return the tensor of `item` in an arena at `base` bytes, or raise LayoutError."""
    dtype = DTYPES.get(item["dtype"])
    if dtype is None:
        raise LayoutError(f"unknown dtype {item['dtype']!r}")
    shape, stride = item["shape"], item["stride"]
    count = span(shape, stride)
    if count == 0:
        device = "cuda" if isinstance(arena, Block) else "cpu"
        return torch.empty(shape, dtype=dtype, device=device)
    offset = base + item["offset"]
    if offset < 0 or offset + count * dtype.itemsize > len(arena):
        raise LayoutError(f"{count} elements at {offset} do not fit {len(arena)} bytes")
    return elements(arena, dtype, count, offset).as_strided(shape, stride)


def attributes_of(value: Any) -> dict[str, Any] | None:  # noqa: ANN401
    """Return the public attributes of an object; `None`: it is more than its attributes."""
    module = isinstance(value, torch.nn.Module)
    if not hasattr(value, "__dict__") or (callable(value) and not module):
        return None
    own = {name: item for name, item in vars(value).items() if not name.startswith("_")}
    if module:
        tensors = (*value.named_parameters(recurse=False), *value.named_buffers(recurse=False))
        own |= {name: tensor.detach() for name, tensor in tensors} | dict(value.named_children())
    return own


class Layout:
    """Lays a tree of values out: `describe` first, then `write` into any region of `size` bytes."""

    def __init__(self) -> None:
        self.size = GUARD_BYTES
        self.items: list[tuple[dict[str, Any], torch.Tensor]] = []

    def describe(self, value: Any) -> dict[str, Any]:  # noqa: ANN401 - a tree of anything
        """Return the JSON tree of `value`, reserving memory for each of its tensors."""
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if isinstance(value, list | tuple):
            kind = "list" if isinstance(value, list) else "tuple"
            return {"t": kind, "v": [self.describe(item) for item in value]}
        if isinstance(value, dict):
            return {"t": "dict", "v": [[str(k), self.describe(v)] for k, v in value.items()]}
        if isinstance(value, torch.dtype):
            return {"t": "dtype", "v": dtype_name(value)}
        if isinstance(value, float):
            return {"t": "float", "v": repr(value)}
        if value is None or isinstance(value, bool | int | str):
            return {"t": "value", "v": value}
        if isinstance(value, torch.device):
            return {"t": "device", "v": str(value)}
        if (type(value).__module__, type(value).__name__) == TRITON_DTYPE:
            return {"t": "triton_dtype", "v": value.name}
        attributes = attributes_of(value)
        if attributes is None:
            raise LayoutError(f"a {type(value).__name__} cannot be handed to a runner")
        return {"t": "object", "v": [[k, self.describe(v)] for k, v in attributes.items()]}

    def _tensor(self, value: torch.Tensor) -> dict[str, Any]:
        if value.layout != torch.strided or dtype_name(value.dtype) not in DTYPES:
            raise LayoutError(f"a {value.layout} tensor of {value.dtype} cannot be shared")
        if 0 in value.stride():
            # Expanded: elements that share memory cannot be written one by one.
            value = value.contiguous()
        offset = -(-self.size // ALIGNMENT) * ALIGNMENT
        item: dict[str, Any] = {
            "t": "tensor",
            "dtype": dtype_name(value.dtype),
            "shape": list(value.shape),
            "stride": list(value.stride()),
            "offset": offset,
        }
        elements = span(item["shape"], item["stride"])
        self.size = offset + elements * value.element_size() + GUARD_BYTES
        self.items.append((item, value))
        return item

    def write(self, arena: Arena, base: int = 0) -> None:
        """Copy every tensor into the arena, at `base` bytes."""
        for item, value in self.items:
            view(arena, item, base).copy_(value)


def build(tree: dict[str, Any], arena: Arena, base: int) -> Any:  # noqa: ANN401
    """Return the value that `tree` describes; tensors are views of the arena at `base`."""
    kind = tree["t"]
    value: Any = tree.get("v")
    if kind == "tensor":
        return view(arena, tree, base)
    if kind in ("list", "tuple"):
        items = [build(item, arena, base) for item in value]
        return items if kind == "list" else tuple(items)
    if kind == "dict":
        return {key: build(item, arena, base) for key, item in value}
    if kind == "object":
        return Attributes(**{name: build(item, arena, base) for name, item in value})
    if kind == "dtype":
        return DTYPES[value]
    if kind == "device":
        return torch.device(value if isinstance(arena, Block) else "cpu")
    if kind == "triton_dtype":
        from triton.language import dtype

        return dtype(value)
    return float(value) if kind == "float" else value
