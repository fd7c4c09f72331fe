"""Elements of an output that the reference never writes: its memory held other values there.

The reference runs on memory with two different fills. An element that differs is undefined, and no
comparison looks at it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from tilewright.evaluator.judge import reference as refs
from tilewright.evaluator.judge.number_formats import FLOAT8, is_inexact
from tilewright.evaluator.judge.reference import Reference

ROUNDINGS = 16.0
"""Roundings by which a defined element may differ between two calls: sums in another order."""

Masks = list[torch.Tensor | None]
"""For each output, which elements are defined; `None`: all."""


def defined_elements(
    reference: Reference,
    args: list[Any],
    grad_outputs: list[torch.Tensor],
    seed: int,
    values: Sequence[torch.Tensor],
    written: Sequence[int] | None = None,
) -> Masks:
    """Return which elements of the outputs `values` the reference defines on these arguments."""
    with reference.modes.other_fill() as applies:
        if not applies:
            return [None] * len(values)
        others, _ = refs.run(reference, args, grad_outputs, seed, written)
    if [other.shape for other in others] != [value.shape for value in values]:
        return [None] * len(values)
    return [_defined(*pair) for pair in zip(values, others, strict=True)]


def _defined(value: torch.Tensor, other: torch.Tensor) -> torch.Tensor | None:
    if value.dtype in FLOAT8 or value.layout != torch.strided:
        return None
    same = (value == other) | ((value != value) & (other != other))
    if is_inexact(value):
        size = torch.maximum(value.abs(), other.abs())
        finite = size[torch.isfinite(size)]
        rms = finite.double().square().mean().sqrt() if finite.numel() else 0.0
        same |= (value - other).abs() <= ROUNDINGS * torch.finfo(value.dtype).eps * (size + rms)
    return None if bool(same.all()) else same


def undefined_share(masks: Masks, values: Sequence[torch.Tensor]) -> float:
    """Return which share of all output elements is undefined."""
    count = sum(value.numel() for value in values)
    undefined = sum(int((~mask).sum()) for mask in masks if mask is not None)
    return undefined / count if count else 0.0


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
