"""Where a reference puts its outputs. A candidate may put the same outputs there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations

import torch

from tilewright.evaluator.judge.number_formats import same_values


@dataclass
class OutputPlacement:
    """The rules that outputs of a reference do not follow, by their places."""

    aliases: set[int] = field(default_factory=set)
    """Outputs of its last call that were views of an input."""
    returns_inputs: set[int] = field(default_factory=set)
    """Those of them that were views of an input that it left as it was."""
    shares_outputs: set[tuple[int, int]] = field(default_factory=set)
    """Pairs of outputs of its last call that overlapped."""
    reuses_outputs: set[int] = field(default_factory=set)
    """Outputs in memory that it keeps from call to call, such as a weight."""
    dynamic: bool | None = None
    """Whether an operator chooses a shape by values; `None`: not known yet."""
    on_host: set[int] = field(default_factory=set)
    """Places of outputs that lie on the host although the reference runs on a device."""

    def note_call(
        self,
        given: Sequence[torch.Tensor],
        copies: Sequence[torch.Tensor],
        outputs: Sequence[torch.Tensor],
    ) -> None:
        """Note where the outputs of a call on `copies` of the `given` inputs lie."""
        inputs, returned = memories(copies), memories(outputs)
        kept = {
            _memory(copy)
            for own, copy in zip(given, copies, strict=True)
            # To compare all inputs of each call would take long.
            if _memory(copy) in returned
            if own is copy or same_values(own, copy)
        }
        places = [_memory(value) for value in outputs]
        self.aliases = {place for place, where in enumerate(places) if where in inputs}
        self.returns_inputs = {place for place in self.aliases if places[place] in kept}
        spans = [(place, _span(value)) for place, value in enumerate(outputs) if places[place]]
        self.shares_outputs = {
            (one, other)
            for (one, (start, stop)), (other, (first, last)) in combinations(spans, 2)
            if start < last and first < stop
        }

    def note_kept(self, kept: set[int], outputs: Sequence[torch.Tensor]) -> None:
        """Note which outputs lie in memory that is there between calls too."""
        found = {place for place, value in enumerate(outputs) if _memory(value) in kept - {0}}
        # A new set: a copy of this object, made to undo what a call shows, keeps the old one.
        self.reuses_outputs = self.reuses_outputs | found


def memories(values: Sequence[torch.Tensor]) -> set[int]:
    """Return where the storages of tensors lie that have one."""
    return {_memory(value) for value in values} - {0}


def _memory(value: torch.Tensor) -> int:
    """Return where a tensor's storage lies; 0 where it has none of its own."""
    return value.untyped_storage().data_ptr() if value.layout == torch.strided else 0


def _span(value: torch.Tensor) -> tuple[int, int]:
    """Return the addresses of a tensor's first byte and of the first one behind it."""
    pairs = zip(value.shape, value.stride(), strict=True)
    extent = 1 + sum((size - 1) * step for size, step in pairs) if value.numel() else 0
    return value.data_ptr(), value.data_ptr() + extent * value.element_size()
