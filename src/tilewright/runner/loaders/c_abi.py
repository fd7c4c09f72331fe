"""Load a shared library with the C ABI of `tilewright.h`: one function over tensor structs.

The runner process runs this code together with the library, which can change it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import torch

from tilewright.runner.launch_counter import Launches, poison
from tilewright.wire.tensors import DTYPES

_CODED = (
    "float32 float64 float16 bfloat16 int8 int16 int32 int64 uint8 bool "
    "float8_e4m3fn float8_e5m2 complex64 complex128"
)
"""Dtypes in the order of their codes in `tilewright.h`, from 0 on."""
_CODES = {DTYPES[name]: code for code, name in enumerate(_CODED.split())}
MAX_DIMENSIONS = 8
"""Dimensions of a tensor; `tilewright.h` has arrays of this length."""


class TensorStruct(ctypes.Structure):
    """`tw_tensor` of `tilewright.h`."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("shape", ctypes.c_int64 * MAX_DIMENSIONS),
        ("stride", ctypes.c_int64 * MAX_DIMENSIONS),
        ("ndim", ctypes.c_int32),
        ("dtype", ctypes.c_int32),
    ]


def struct_of(tensor: torch.Tensor) -> TensorStruct:
    """Return the struct of a contiguous tensor of at most eight dimensions."""
    return TensorStruct(
        tensor.data_ptr(),
        (ctypes.c_int64 * MAX_DIMENSIONS)(*tensor.shape),
        (ctypes.c_int64 * MAX_DIMENSIONS)(*tensor.stride()),
        tensor.dim(),
        _CODES[tensor.dtype],
    )


def as_tensor(value: Any) -> torch.Tensor:  # noqa: ANN401
    """Return a contiguous tensor of an argument: numbers become f64 or i64 without dimensions."""
    if isinstance(value, torch.Tensor):
        return value.contiguous()
    if isinstance(value, float):
        return torch.tensor(value, dtype=torch.float64)
    if isinstance(value, bool | int):
        return torch.tensor(int(value), dtype=torch.int64)
    raise TypeError(f"a {type(value).__name__} has no place in the C ABI")


def load(
    path: str, entry: str, outputs: list[dict[str, Any]], launches: Launches
) -> Callable[..., tuple[torch.Tensor, ...]]:
    """Return a function of tensors that calls `entry` of the library at `path`.

    The caller replaces the items of `outputs` (`dtype`, `shape`) at each size.
    """
    function = getattr(ctypes.CDLL(path), entry)
    function.restype = ctypes.c_int

    def call(*args: Any) -> tuple[torch.Tensor, ...]:  # noqa: ANN401
        inputs = [as_tensor(value) for value in args]
        device = inputs[0].device if inputs else None
        results = [
            torch.empty(item["shape"], dtype=DTYPES[item["dtype"]], device=device)
            for item in outputs
        ]
        if not launches.suppress:
            into = (TensorStruct * len(inputs))(*[struct_of(value) for value in inputs])
            out = (TensorStruct * len(results))(*[struct_of(value) for value in results])
            code = launches.measured(function, into, len(inputs), out, len(results))
            if code != 0:
                raise RuntimeError(f"{entry} returned {code}; it must return 0 if all went well")
        elif not launches.timed:
            poison(results)
        launches.count += 1
        return tuple(results)

    return call
