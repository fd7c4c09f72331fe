"""Numbers of which some are not known: a value and whether there is one, never a stand-in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tilewright.errors import RecordError

__all__ = ["Masked", "listed", "masked", "require_shape", "zero_filled"]


@dataclass(frozen=True, slots=True)
class Masked:
    """Values of any shape, and where they mean something.

    Attributes:
        values: floating point, finite wherever `known`. Elsewhere they are never read, so that
            NaN may stand there; what the functions of this room return holds 0 there.
        known: bool, of the shape of `values`.

    Raises:
        RecordError: shapes or dtypes do not fit, or a known value is not finite.
    """

    values: Tensor
    known: Tensor

    def __post_init__(self) -> None:
        """Refuse what would turn into NaN far from its cause."""
        require_shape("known", self.known, self.values.shape)
        if not self.values.is_floating_point() or self.known.dtype != torch.bool:
            raise RecordError(
                f"values are {self.values.dtype} and known is {self.known.dtype}, "
                "wanted floating point and bool"
            )
        if not bool((self.values.isfinite() | ~self.known).all()):
            raise RecordError("a known value is not finite")


def masked(rows: Sequence[Sequence[float | None]]) -> Masked:
    """Return float64 values of shape (rows, longest row), not known where there is `None`.

    Short rows are filled up with what is not known.
    """
    longest = max(map(len, rows), default=0)
    values = torch.zeros(len(rows), longest, dtype=torch.float64)
    known = torch.zeros(len(rows), longest, dtype=torch.bool)
    for number, row in enumerate(rows):
        values[number, : len(row)] = torch.tensor(
            [0.0 if value is None else value for value in row], dtype=torch.float64
        )
        known[number, : len(row)] = torch.tensor(
            [value is not None for value in row], dtype=torch.bool
        )
    return Masked(values, known)


def listed(table: Masked) -> list[list[float | None]]:
    """Return the rows of a table of two dimensions, `None` where a value is not known."""
    return [
        [value if known else None for value, known in zip(*pair, strict=True)]
        for pair in zip(table.values.tolist(), table.known.tolist(), strict=True)
    ]


def zero_filled(table: Masked) -> Tensor:
    """Return the values in float64 with 0 where none is known, for sums that skip those."""
    return torch.where(table.known, table.values.to(torch.float64), 0.0)


def require_shape(name: str, tensor: Tensor, shape: Sequence[int]) -> None:
    """Refuse a tensor of another shape, which broadcasting would let pass.

    Raises:
        RecordError: the shapes differ.
    """
    if tuple(tensor.shape) != tuple(shape):
        raise RecordError(f"{name} is of shape {tuple(tensor.shape)}, wanted {tuple(shape)}")
