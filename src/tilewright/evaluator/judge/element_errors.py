"""The errors of single elements of an output, and how many may exceed their tolerance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from tilewright.evaluator.judge.error_statistics import MIN_GROUP, is_short
from tilewright.evaluator.judge.number_formats import FLOAT8, is_inexact

FEW = 1e-4
"""Share of the elements whose error may reach twice the reference's worst error. Only errors of
the reference beyond the tolerance count for that worst error: a huge element says nothing about
the others."""
TAIL_SHARE = 2e-3
"""Share of the elements of a float32 output that may exceed the tolerance by `TAIL_FACTOR`."""
TAIL_FACTOR = 4.0
"""Winograd F(4x4, 3x3) is off by up to 2.6 times the tolerance on 0.03 % of the elements. The error
of a transformed tile grows with its largest element. The RMS of the error stays limited."""
FILL_ROUNDINGS = 16.0
"""Roundings by which a defined element may differ between two calls: sums in another order."""
Masks = list[torch.Tensor | None]
"""For each output, which elements the reference defines; `None`: all."""


@dataclass(frozen=True)
class ElementErrors:
    """The result of comparing one part of an output, by its worst element."""

    nonfinite: bool
    worst: float
    """Its error in units of the allowed one."""
    index: int
    want: float
    got: float
    wrong: int
    outlier_ratio: float = math.inf
    """The error of the worst wrong one in units of what a few may be off by."""
    worst_ratio: float = 0.0
    """The error of the worst of the others, in units of the allowed one."""


def within_tail(found: list[ElementErrors], value: torch.Tensor) -> bool:
    """Tell whether few elements of a float32 output are wrong, and by little."""
    wrong, count = sum(each.wrong for each in found), value.numel()
    few = wrong <= TAIL_SHARE * count + (count >= MIN_GROUP)
    single = not is_short(torch.finfo(value.dtype).eps)
    return few and single and all(each.worst <= TAIL_FACTOR for each in found)


def within_outlier_budget(found: list[ElementErrors], count: int) -> bool:
    """Tell whether few elements are wrong, and by no more than the reference's error allows."""
    wrong = sum(each.wrong for each in found)
    return wrong <= FEW * count and all(each.outlier_ratio <= 1.0 for each in found)


def place_of(index: int, shape: Sequence[int]) -> list[int]:
    """Return the coordinates of a flat index; `torch.unravel_index` imports 486 modules.

    The last coordinate of a complex element is 0 for its real part and 1 for its imaginary one.
    """
    place = []
    for size in reversed(shape):
        index, rest = divmod(index, size)
        place.append(rest)
    return place[::-1]


def defined_mask(value: torch.Tensor, other: torch.Tensor) -> torch.Tensor | None:
    """Return which elements are the same on memory with two fills; `None`: all."""
    if value.dtype in FLOAT8 or value.layout != torch.strided:
        return None
    same = (value == other) | ((value != value) & (other != other))
    if is_inexact(value):
        size = torch.maximum(value.abs(), other.abs())
        finite = size[torch.isfinite(size)]
        rms = finite.double().square().mean().sqrt() if finite.numel() else 0.0
        difference = (value - other).abs()
        near = difference <= FILL_ROUNDINGS * torch.finfo(value.dtype).eps * (size + rms)
        same |= near & torch.isfinite(difference)
    return None if bool(same.all()) else same


def with_known(
    values: Sequence[torch.Tensor], masks: Masks, known: Sequence[torch.Tensor]
) -> list[torch.Tensor]:
    """Return outputs with the elements of `known` where they are undefined."""
    return [
        value
        if mask is None or value.shape != mask.shape
        else torch.where(mask, value, other.to(value.dtype))
        for value, mask, other in zip(values, masks, known, strict=True)
    ]
