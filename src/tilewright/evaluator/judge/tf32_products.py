"""The reference with the factors of its products rounded to tf32, whatever the library does.

Where the rules allow tf32, the library uses it only for shapes that its fast kernels take. An
implementation may divide the same product into other shapes, for which tf32 is used. So the error
that the rules allow is that of rounded factors, not that of the library's choice.

A tf32 number has 10 bits behind the leading one, and the range of float32 (NVIDIA, A100 Tensor
Core GPU Architecture, 2020). Products of such numbers are added in float32.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from tilewright.evaluator.judge import reference as refs
from tilewright.evaluator.judge.comparison import Expected, error_of
from tilewright.evaluator.judge.reference import ProblemFailure, Reference, is_out_of_memory
from tilewright.wire.dispatch_mode import OperatorMode
from tilewright.wire.frames import Fields

DROPPED_BITS = 13
"""Bits of a float32 number that tf32 does not have."""
LARGER = 1.5
"""Factor of the reference error above which rounded factors are not what it computes with."""
_aten = torch.ops.aten
FACTORS: dict[Any, tuple[int, ...]] = {
    _aten.mm.default: (0, 1),
    _aten.bmm.default: (0, 1),
    _aten.addmm.default: (1, 2),
    _aten.addbmm.default: (1, 2),
    _aten.baddbmm.default: (1, 2),
    _aten.linear.default: (0, 1),
    _aten.convolution.default: (0, 1),
    _aten.convolution_backward.default: (0, 1, 2),
    _aten._scaled_dot_product_efficient_attention.default: (0, 1, 2),
    _aten._cudnn_rnn.default: (0, 1),
}
"""Operators that may use tf32, and which of their arguments are factors."""


class RoundedProducts(OperatorMode):
    """Rounds the float32 factors of products. Lifetime: a `with` block.

    Attributes:
        used: whether there was a product of float32.
    """

    def __init__(self, rounding: Callable[[torch.Tensor], torch.Tensor] | None = None) -> None:
        super().__init__()
        self.used = False
        self._rounding = rounding or rounded_to_tf32

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Any,  # noqa: ANN401
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401
        """Call an operator, a product with rounded factors."""
        places = FACTORS.get(func, ())
        given = [
            self._rounded(value) if place in places else value for place, value in enumerate(args)
        ]
        return func(*given, **(kwargs or {}))

    def _rounded(self, value: Any) -> Any:  # noqa: ANN401
        if isinstance(value, list | tuple):
            return [self._rounded(item) for item in value]
        if not isinstance(value, torch.Tensor) or value.dtype != torch.float32:
            return value
        self.used = True
        return self._rounding(value)


def rounded_to_tf32(value: torch.Tensor) -> torch.Tensor:
    """Return float32 values rounded to the nearest tf32; ties go away from zero."""
    bits = value.contiguous().view(torch.int32)
    half, mask = 1 << (DROPPED_BITS - 1), -(1 << DROPPED_BITS)
    found = (bits + half).bitwise_and_(mask).view(torch.float32)
    return torch.where(torch.isfinite(value), found, value)


def truncated_to_tf32(value: torch.Tensor) -> torch.Tensor:
    """Return float32 values without the bits that tf32 lacks."""
    found = value.contiguous().view(torch.int32).bitwise_and(-(1 << DROPPED_BITS))
    return torch.where(torch.isfinite(value), found.view(torch.float32), value)


def has_products(reference: Reference, args: list[Any]) -> bool:
    """Tell whether the reference multiplies float32 factors in a way that may use tf32."""
    mode = RoundedProducts()
    evaluated_in(reference, mode, lambda: refs.run(reference, args, [], 1)[0])
    return mode.used


def allow_for_tf32(
    reference: Reference,
    params: Fields,
    expected: list[Expected],
    evaluate: Callable[[], list[torch.Tensor]],
) -> list[Expected]:
    """Return `expected` with the error of rounded factors, if that is the larger one.

    `evaluate` evaluates the reference on the sample once more. The first sample of a case shows
    whether rounded factors matter; if they do not, later samples cost nothing.
    """
    case = json.dumps(params, sort_keys=True, default=str)
    if not reference.precision.allows_tf32 or not reference.precision.tf32_cases.get(case, True):
        return expected
    values = evaluated_in(reference, RoundedProducts(), evaluate)
    if values is None or len(values) != len(expected):
        return expected
    wider = [_wider(*pair) for pair in zip(expected, values, strict=True)]
    reference.precision.tf32_cases.setdefault(
        case, any(new is not old for new, old in zip(wider, expected, strict=True))
    )
    return wider


def _wider(item: Expected, rounded: torch.Tensor) -> Expected:
    """Return `item` with the errors of `rounded`, if these are larger.

    Where an oracle tells what is right, `rounded` takes the place of the value. Rows with large
    factors have larger errors in it too, and so have softmax rows whose scores nearly tie.
    """
    value = item.value
    if not value.is_floating_point() or rounded.shape != value.shape:
        return item
    error, error_rms = error_of(rounded, value if item.oracle is None else item.oracle)
    if error <= LARGER * item.reference_error:
        return item
    wider = replace(item, reference_error=error, error_rms=max(error_rms, item.error_rms))
    if item.oracle is None or not torch.equal(rounded.isfinite(), value.isfinite()):
        return wider
    return replace(wider, value=rounded)


def evaluated_in(
    reference: Reference, mode: RoundedProducts, evaluate: Callable[[], list[torch.Tensor]]
) -> list[torch.Tensor] | None:
    """Evaluate in a mode, or return `None` where the reference cannot be evaluated in it."""
    took_s = reference.call_s
    try:
        with mode:
            return evaluate()
    except (ProblemFailure, torch.OutOfMemoryError) as error:
        # Without the mode it has run before.
        reference.precision.ran_out_of_memory |= is_out_of_memory(error)
        return None
    finally:
        reference.call_s = took_s
