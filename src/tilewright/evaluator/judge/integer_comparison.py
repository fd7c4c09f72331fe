"""Is an output of integers right? Exactly the reference's, unless rounding or a tie decides.

An element is right if it is that of the reference, of the oracle, or of an oracle whose inputs were
rounded. Counts, such as those of a histogram, may move as often and as far as rounding moves them
(ADR 77). Where an output holds indices, values that tie may be named in any order: the gathered
values decide. An index that the reference names once may not be named twice (ADR 46).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch

MAX_MOVED_SHARE = 1 / 64
"""Share of the elements up to which those that rounding moves are stored alone, with their places.
An index takes eight bytes."""
MOVED_FACTOR = 4
"""How many more elements may differ than one rounding of the inputs moves: another implementation
rounds at other places."""
CHUNK = 1 << 24
"""Elements that are compared at once, in eight bytes each."""
MAX_COUNT = 1 << 53
"""Largest count: sums of counts stay exact."""
FURTHEST_FACTOR = 2
"""How much further one of them may be off than one rounding moves any."""


@dataclass(frozen=True)
class Moves:
    """By how much counts differ from others."""

    count: int
    """Number of elements that differ."""
    total: int
    """Sum of the differences."""
    furthest: int
    """The largest difference."""
    balance: int
    """Sum of the signed differences: zero where elements move from one count to another."""

    @classmethod
    def of(cls, ones: torch.Tensor, others: torch.Tensor) -> Moves:
        """Return the differences of two tensors of one shape."""
        count = total = furthest = balance = 0
        pairs = zip(ones.reshape(-1).split(CHUNK), others.reshape(-1).split(CHUNK), strict=True)
        for one, other in pairs:
            if one.numel():
                signed = one.long() - other.long()
                far = signed.abs()
                count, total = count + int((far != 0).sum()), total + int(far.sum())
                furthest, balance = max(furthest, int(far.max())), balance + int(signed.sum())
        return cls(count, total, furthest, balance)

    def exceed(self, rounding: Moves) -> bool:
        """Tell whether they are more than those of rounding, by more than the factors."""
        return (
            self.count > MOVED_FACTOR * rounding.count
            or self.furthest > FURTHEST_FACTOR * rounding.furthest
            or self.balance != 0
        )


@dataclass(frozen=True)
class OtherIntegers:
    """Integers that another implementation may return instead of the reference's."""

    values: torch.Tensor
    """All of them, or those at `places`."""
    places: torch.Tensor | None = None
    """Where they differ from the reference's, by flat index; `None`: `values` are all."""

    @classmethod
    def of(cls, value: torch.Tensor, other: torch.Tensor) -> OtherIntegers:
        """Return what `other` holds besides the reference's `value`, of one shape and dtype."""
        places = (other != value).reshape(-1).nonzero().reshape(-1)
        if places.numel() > MAX_MOVED_SHARE * value.numel():
            return cls(other)
        return cls(other.reshape(-1)[places], places)

    @property
    def is_sparse(self) -> bool:
        """Tell whether few elements differ from the reference's."""
        return self.places is not None

    def moves(self, value: torch.Tensor) -> Moves:
        """Return by how much they differ from the reference's `value`."""
        if self.places is None:
            return Moves.of(self.values, value)
        return Moves.of(self.values, value.reshape(-1)[self.places])

    def reorders(self, value: torch.Tensor) -> bool:
        """Tell whether they are the reference's numbers in another order."""
        own = value if self.places is None else value.reshape(-1)[self.places]
        return torch.equal(self.values.reshape(-1).sort().values, own.reshape(-1).sort().values)

    def excuse(self, wrong: torch.Tensor, output: torch.Tensor) -> None:
        """Take out of `wrong` what equals these integers; all tensors have one shape."""
        if self.places is None:
            wrong &= self.values != output
        else:
            flat, got = wrong.view(-1), output.reshape(-1)[self.places]
            flat[self.places] = flat[self.places] & (self.values != got)


def compare_integers(
    value: torch.Tensor, output: torch.Tensor, accepted: Iterable[OtherIntegers] = ()
) -> str:
    """Return what is wrong with an output of integers or truth values; empty if nothing is."""
    wrong, others = (value != output).contiguous(), list(accepted)
    for other in others:
        other.excuse(wrong, output)
    if not bool(wrong.any()) or _moves_as_rounding_does(value, output, others):
        return ""
    wrong = wrong.cpu()
    index = int(wrong.reshape(-1).int().argmax())
    return (
        f"at flat index {index}: expected {value.reshape(-1)[index].item()}, "
        f"got {output.reshape(-1)[index].item()}; {int(wrong.sum())} of {value.numel()} are wrong"
    )


def _moves_as_rounding_does(
    value: torch.Tensor, output: torch.Tensor, others: Sequence[OtherIntegers]
) -> bool:
    """Tell whether an output of counts differs no more than rounding, which changes few of them.

    An element that rounding moves leaves one count and enters another, so that their sum stays.
    Which elements move depends on the implementation: few of its counts are those of a rounded
    oracle. Where rounding puts the same numbers in another order, they are indices.
    """
    if not others or value.dtype not in (torch.int32, torch.int64) or bool((value < 0).any()):
        return False
    if int(value.max()) > MAX_COUNT or not bool(((output >= 0) & (output <= MAX_COUNT)).all()):
        return False
    seen, limit = Moves.of(output, value), MAX_MOVED_SHARE * float(value.sum())
    return seen.balance == 0 and any(
        moves.balance == 0
        and moves.total <= limit
        and not seen.exceed(moves)
        and not other.reorders(value)
        for other in others
        for moves in [other.moves(value)]
    )


def names_ties(
    value: torch.Tensor,
    output: torch.Tensor,
    sources: Sequence[torch.Tensor],
    decides: Callable[[int], bool],
) -> bool:
    """Tell whether `output` names other places of equal values than `value`, in an input.

    An input is a source of the indices if it has their dimensions, but for one, which the indices
    point into. It must hold different values there: of equal ones any index would be right. No
    other input that may hold what is chosen by may decide. `decides` tells of an index in `sources`
    whether other values of that input make another choice.
    """
    if value.dtype not in (torch.int32, torch.int64) or value.shape != output.shape:
        return False
    if not value.numel():
        return False
    ties = {index for index, source in enumerate(sources) if _ties_in(source, value, output)}
    if not ties:
        return False
    # Numbers that tie are what is chosen by. Integers and truth values may be a mask of it.
    exact = not any(sources[index].is_floating_point() for index in ties)
    least = min(sources[index].numel() for index in ties)
    return not any(
        decides(index)
        for index, source in enumerate(sources)
        if index not in ties and (exact or source.is_floating_point() or source.numel() >= least)
    )


def _ties_in(source: torch.Tensor, value: torch.Tensor, output: torch.Tensor) -> bool:
    dims = range(source.dim() if source.numel() else 0)
    return any(_same_in(source, dim, value, output) for dim in dims)


def _same_in(source: torch.Tensor, dim: int, value: torch.Tensor, output: torch.Tensor) -> bool:
    """Tell whether both name equal values of `source` along a dimension, and as many places."""
    size = source.shape[dim]
    rest = [*source.shape[:dim], *source.shape[dim + 1 :]]
    if list(value.shape) == rest:
        value, output = value.unsqueeze(dim), output.unsqueeze(dim)
    shape = list(value.shape)
    if len(shape) != source.dim() or [*shape[:dim], *shape[dim + 1 :]] != rest:
        return False
    if not all(bool(((item >= 0) & (item < size)).all()) for item in (value, output)):
        return False
    if bool((source == source.narrow(dim, 0, 1)).all()):
        return False
    wanted, got = (source.gather(dim, item.long()) for item in (value, output))
    if not bool(((wanted == got) | ((wanted != wanted) & (got != got))).all()):
        return False
    return _distinct(value, dim) <= _distinct(output, dim)


def _distinct(indices: torch.Tensor, dim: int) -> int:
    """Return how many different indices the slices along a dimension name, summed over all."""
    ordered = indices.sort(dim).values
    steps = ordered.diff(dim=dim) != 0
    return int(steps.sum()) + indices.numel() // max(indices.shape[dim], 1)
