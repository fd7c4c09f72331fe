"""Elements of an output that the reference never writes: its memory held other values there.

The reference runs on memory with two different fills. An element that differs is undefined, and no
comparison looks at it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from tilewright.evaluator.judge import reference as refs
from tilewright.evaluator.judge.element_errors import Masks, defined_mask
from tilewright.evaluator.judge.reference import Reference


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
    return [defined_mask(*pair) for pair in zip(values, others, strict=True)]


def undefined_share(masks: Masks, values: Sequence[torch.Tensor]) -> float:
    """Return which share of all output elements is undefined."""
    count = sum(value.numel() for value in values)
    undefined = sum(int((~mask).sum()) for mask in masks if mask is not None)
    return undefined / count if count else 0.0
