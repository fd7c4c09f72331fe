"""Tensors whose values may be unknown: values with a mask, and never a number in their place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

import torch
from torch import Tensor

from tilewright.errors import RecordError


@dataclass(frozen=True, slots=True)
class Masked:
    """Values of any shape, and a mask of those that are known.

    Attributes:
        values: floating point, finite where `known`. No function reads the other values, so they
            may be NaN. Functions of this package return 0 there.
        known: bool, of the shape of `values`.

    Raises:
        RecordError: shapes or dtypes do not fit, or a known value is not finite.
    """

    values: Tensor
    known: Tensor

    def __post_init__(self) -> None:
        require_shape("known", self.known, self.values.shape)
        if not self.values.is_floating_point() or self.known.dtype != torch.bool:
            raise RecordError(
                f"values are {self.values.dtype} and known is {self.known.dtype}; "
                "give floating point and bool"
            )
        if not bool((self.values.isfinite() | ~self.known).all()):
            raise RecordError("a known value is not finite")


def masked(rows: Sequence[Sequence[float | None]]) -> Masked:
    """Return float64 values, shape (rows, longest row), unknown at `None` and after short rows."""
    padded = [list(row) for row in zip(*zip_longest(*rows), strict=True)]
    shape = len(rows), max(map(len, rows), default=0)
    values = [[0.0 if value is None else value for value in row] for row in padded]
    known = [[value is not None for value in row] for row in padded]
    return Masked(
        torch.tensor(values, dtype=torch.float64).reshape(shape),
        torch.tensor(known, dtype=torch.bool).reshape(shape),
    )


def listed(table: Masked) -> list[list[float | None]]:
    """Return the rows of a table of two dimensions, with `None` for unknown values."""
    return [
        [value if known else None for value, known in zip(*pair, strict=True)]
        for pair in zip(table.values.tolist(), table.known.tolist(), strict=True)
    ]


def zero_filled(table: Masked) -> Tensor:
    """Return the values in float64, with 0 for unknown values."""
    return torch.where(table.known, table.values.to(torch.float64), 0.0)


def require_shape(name: str, tensor: Tensor, shape: Sequence[int]) -> None:
    """Refuse a tensor of another shape; broadcasting would accept some of them."""
    if tuple(tensor.shape) != tuple(shape):
        raise RecordError(f"{name} has shape {tuple(tensor.shape)}; expected {tuple(shape)}")
