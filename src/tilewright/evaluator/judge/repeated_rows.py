"""Whether input rows take so few values that a table of results can replace the computation.

Such a table is right for every input that the generator can make, and no later input shows that it
was used. So it is no attack, and the problem gets a label (ADR 51).
"""

from __future__ import annotations

from typing import Any

import torch

from tilewright.evaluator.judge import argument_trees as trees

MIN_ROWS = 64
"""Rows from which on a repetition is no accident."""
MAX_ROWS = 1 << 14
"""Rows of a sample that are compared, at most."""
MAX_ELEMENTS = 16
"""Elements of one row over all inputs. Longer rows repeat only if something repeats them."""
REPEATS = 8
"""Rows for each different one, on average, from which on they count as repeated."""
SAME = 1e-4
"""Difference of two equal outputs, as a share of them: a reduction may add in another order."""


def different_rows(
    first: list[Any], second: list[Any], outputs: list[torch.Tensor]
) -> tuple[int, int] | None:
    """Return how many rows two samples have, and how many of these differ; `None`: not repeated.

    `first` and `second` are the arguments under two seeds, and `outputs` those on the first. A row
    is what all inputs and outputs hold at one index of their first dimension. Rows count as
    repeated if they are few, if equal rows have equal outputs, and if no other input changes.
    """
    count = outputs[0].shape[0] if outputs and outputs[0].dim() else 0
    if count < MIN_ROWS or any(not o.dim() or o.shape[0] != count for o in outputs):
        return None
    ours, theirs = (_rows(args, count) for args in (first, second))
    if ours is None or theirs is None or not _same_beside(first, second, count):
        return None
    known, places = torch.unique(torch.cat([ours, theirs]), dim=0, return_inverse=True)
    total, differing = len(ours) + len(theirs), len(known)
    if differing * REPEATS > total:
        return None
    at = places[: len(ours)]
    return (total, differing) if all(_follows(o[: len(ours)], at) for o in outputs) else None


def _rows(args: list[Any], count: int) -> torch.Tensor | None:
    """Return the rows of all inputs that have `count` of them, in float64; `None`: too long."""
    parts = [value[:MAX_ROWS] for value in trees.tensors(args) if _has_rows(value, count)]
    width = sum(part.numel() // len(part) for part in parts)
    if not 0 < width <= MAX_ELEMENTS or any(part.is_complex() for part in parts):
        return None
    return torch.cat([part.detach().double().reshape(len(part), -1) for part in parts], 1).cpu()


def _has_rows(value: torch.Tensor, count: int) -> bool:
    return value.layout == torch.strided and value.dim() > 0 and value.shape[0] == count


def _same_beside(first: list[Any], second: list[Any], count: int) -> bool:
    """Tell whether the inputs without rows are the same in both samples."""
    ours, theirs = (
        [value for value in trees.tensors(args) if not _has_rows(value, count)]
        for args in (first, second)
    )
    return len(ours) == len(theirs) and all(
        one.layout == torch.strided and one.shape == other.shape and torch.equal(one, other)
        for one, other in zip(ours, theirs, strict=True)
    )


def _follows(output: torch.Tensor, places: torch.Tensor) -> bool:
    """Tell whether rows of an output are equal where the rows of the inputs are."""
    if output.is_complex():
        output = torch.view_as_real(output)
    values = output.detach().double().reshape(len(output), -1).cpu()
    # The last row of each kind stands for it.
    chosen = torch.empty(int(places.max()) + 1, dtype=torch.int64)
    chosen[places] = torch.arange(len(places))
    return torch.allclose(values, values[chosen[places]], rtol=SAME, atol=0.0, equal_nan=True)
