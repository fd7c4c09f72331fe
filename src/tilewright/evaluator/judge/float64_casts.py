"""A mode of torch in which a reference computes in float64 although it names narrower dtypes.

A float8 problem must name dtypes: torch adds and multiplies no float8. In this mode float32,
float16 and bfloat16 mean float64, and complex64 means complex128. Float8 keeps its meaning,
because it quantizes. With `SINGLE` alone the types of 16 bits quantize too. This file is also
copied into reproducers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

SINGLE = {torch.float32: torch.float64, torch.complex64: torch.complex128}
WIDER_DTYPE = {**SINGLE, torch.float16: torch.float64, torch.bfloat16: torch.float64}
_NAMED = {"float": torch.float32, "half": torch.float16, "bfloat16": torch.bfloat16}
"""Methods of a tensor that are named for the dtype to which they convert."""


class Float64Casts(TorchFunctionMode):
    """Replaces narrow dtypes among the arguments of torch's functions. Lifetime: a `with` block."""

    def __init__(self, wider: dict[torch.dtype, torch.dtype] = WIDER_DTYPE) -> None:
        super().__init__()
        self._wider = wider

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,  # noqa: ANN401
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401
        """Call `func` with wide dtypes; a scaled product of float8 is made of its factors."""
        named = {name: self._wide(value) for name, value in (kwargs or {}).items()}
        if func is torch._scaled_mm:
            return scaled_product(*args, **named)
        name = getattr(func, "__name__", "")
        if name == "view":
            # It looks at bits, and those of a wider number are others.
            return func(*args, **(kwargs or {}))
        kind = _NAMED.get(name)
        if kind in self._wider and args and isinstance(args[0], torch.Tensor):
            return args[0].to(torch.float64)
        return func(*map(self._wide, args), **named)

    def _wide(self, value: Any) -> Any:  # noqa: ANN401 - any argument of a function of torch
        return self._wider.get(value, value) if isinstance(value, torch.dtype) else value


def scaled_product(
    one: torch.Tensor,
    other: torch.Tensor,
    scale_a: torch.Tensor,
    scale_b: torch.Tensor,
    bias: torch.Tensor | None = None,
    scale_result: torch.Tensor | None = None,
    out_dtype: torch.dtype | None = None,
    use_fast_accum: bool = False,  # noqa: ARG001
) -> torch.Tensor:
    """Return `torch._scaled_mm` of the factors in float64; a float8 result is quantized.

    Scales are numbers, or one for each row of `one` and each column of `other`.
    """
    product = (one.double() * scale_a.double()) @ (other.double() * scale_b.double())
    if bias is not None:
        product = product + bias.double()
    if out_dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        scale = 1.0 if scale_result is None else scale_result.double()
        return (product * scale).to(out_dtype)
    return product
