"""Whether a candidate still refers to the memory of an output that it has returned.

Such a candidate can leave in that memory what a later call would have to compute.
Its caller therefore copies the output, as a part of the call.
An output that nobody else refers to needs no copy.

The counts of references are compared with those of outputs that their calls alone have made.
One is a tensor, the other a view of a tensor that the call has dropped.
A view refers to its base, so its memory has one reference more.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from tilewright.runner import calls

_binding: Any = torch._C
_storage_count = _binding._storage_Use_Count
_tensor_count = getattr(torch.Tensor, "_use_count", None)
UNKNOWN = sys.maxsize
"""The count of a base's tensors where torch cannot tell it. Each view is copied then."""


class ReferenceCounts(NamedTuple):
    """How often a leaf of an output is referred to. The last two are 0 without a base."""

    names: int
    """References to the leaf as an object."""
    tensors: int
    """Tensors that have its memory."""
    base_names: int
    """The same of the tensor that the leaf is a view of."""
    base_tensors: int


NO_REFERENCES = ReferenceCounts(0, 0, 0, 0)


@dataclass(frozen=True)
class KeptOutputs:
    """Tells which outputs a candidate keeps, in a process in which `measure` has run."""

    tensor: ReferenceCounts
    """Counts of a tensor that nobody keeps."""
    view: ReferenceCounts
    """Counts of a view that nobody keeps, of a base that nobody keeps."""

    @classmethod
    def measure(cls) -> KeptOutputs:
        """Count the references to outputs of which nothing is kept."""
        found = []
        for make in (_tensor, _view):
            output = make()
            leaves, _ = calls.deliver(output)
            originals, _ = calls.flatten(output)
            found += reference_counts(originals, leaves)
        return cls(*found)

    def are_kept(
        self,
        originals: Sequence[Any],
        leaves: Sequence[Any],
        shared: frozenset[tuple[int, int]] = frozenset(),
    ) -> list[bool]:
        """Tell for each delivered leaf whether it lies in memory that is kept.

        `originals` are the leaves of the output, to which only its container and the caller's list
        refer, or the caller's variable and list. `shared` are places of outputs that may have one
        memory; they refer to it together.
        """
        kept = []
        for place, counts in enumerate(reference_counts(originals, leaves)):
            unkept = self._unkept(counts, *_beside(place, originals, leaves, shared))
            more = any(found > plain for found, plain in zip(counts, unkept, strict=True))
            kept.append(more or UNKNOWN in counts)
        return kept

    def _unkept(
        self, counts: ReferenceCounts, leaves: int, same: int, views: int
    ) -> ReferenceCounts:
        """Return the counts of a leaf that nobody keeps, of which others lie in the same memory.

        `leaves` counts the others, `same` those of them that are the same object, and `views` the
        further objects that are views of its base.
        """
        alone = self.view if counts.base_names else self.tensor
        return ReferenceCounts(
            # The container and the caller's list refer to an object once for each place.
            names=alone.names + 2 * same,
            tensors=alone.tensors + leaves + views,
            base_names=alone.base_names,
            base_tensors=alone.base_tensors + views,
        )


def _tensor() -> torch.Tensor:
    return torch.zeros(2)


def _view() -> torch.Tensor:
    whole = torch.zeros(2)
    return whole.view(1, 2)


def reference_counts(originals: Sequence[Any], leaves: Sequence[Any]) -> list[ReferenceCounts]:
    """Return the counts of each leaf, zeros for one that is no plain tensor or already a copy."""
    # `zip` would keep its first pair, which may be returned twice.
    count = min(len(originals), len(leaves))
    return [_counts(originals[place], leaves[place]) for place in range(count)]


def _counts(original: Any, leaf: Any) -> ReferenceCounts:  # noqa: ANN401
    if not calls.is_plain(leaf) or not calls.is_plain(original):
        return NO_REFERENCES
    storage = leaf.untyped_storage()
    if storage.data_ptr() != original.untyped_storage().data_ptr():
        return NO_REFERENCES
    names, tensors = sys.getrefcount(original), int(_storage_count(storage._cdata))
    base = original._base
    if base is None:
        return ReferenceCounts(names, tensors, 0, 0)
    of_base = UNKNOWN if _tensor_count is None else int(_tensor_count(base))
    return ReferenceCounts(names, tensors, sys.getrefcount(base), of_base)


def _beside(
    place: int,
    originals: Sequence[Any],
    leaves: Sequence[Any],
    shared: frozenset[tuple[int, int]],
) -> tuple[int, int, int]:
    """Return how many other leaves may lie in a leaf's memory, as `KeptOutputs._unkept` takes them.

    They overlap only if the places are in `shared`.
    """
    own, others = originals[place], []
    for other, leaf in enumerate(leaves):
        if other == place or not _lie_together(leaves[place], leaf):
            continue
        pair = (min(place, other), max(place, other))
        if pair in shared or not _overlap(leaves[place], leaf):
            others.append(originals[other])
    same = sum(other is own for other in others)
    views = {id(other) for other in others if other is not own and _are_views_of_one(other, own)}
    related = [other for other in others if other is own or id(other) in views]
    return len(related), same, len(views)


def _lie_together(one: Any, other: Any) -> bool:  # noqa: ANN401
    return (
        calls.is_plain(one)
        and calls.is_plain(other)
        and bool(one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr())
    )


def _overlap(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Tell whether two dense tensors have a byte in common."""
    return (
        one.data_ptr() < other.data_ptr() + other.nbytes
        and other.data_ptr() < one.data_ptr() + one.nbytes
    )


def _are_views_of_one(one: Any, other: Any) -> bool:  # noqa: ANN401
    return one._base is not None and one._base is other._base
