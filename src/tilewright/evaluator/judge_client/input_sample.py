"""The supervisor's record of an input sample that the judge holds."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.evaluator.judge_client.messages import SampleLayout
from tilewright.wire.frames import Fields, Tree

PAGE_BYTES = 4096
"""Slots of the input memory are multiples of this: the page size of every supported host."""


@dataclass(frozen=True)
class InputSampleInfo:
    """An input sample: how it lies in memory, not what its values are."""

    name: str
    case: str
    variation: str
    seed: int
    forward_seed: int
    layout: SampleLayout

    @property
    def slot_bytes(self) -> int:
        """Return the size of one slot of the input memory, in whole pages."""
        return -(-self.layout.size // PAGE_BYTES) * PAGE_BYTES

    def call_fields(self, slot: int) -> Fields:
        """Return the fields by which a runner calls on this sample, published at `slot`."""
        return {
            "base": slot * self.slot_bytes,
            "size": self.layout.size,
            "args": self.layout.tree,
            "grads": self.layout.grads,
            "grad_outputs": self.layout.grad_outputs,
            "forward_seed": self.forward_seed,
            "expected": self.layout.outputs,
        }

    def dtypes(self) -> set[str]:
        """Return the dtypes of inputs and outputs."""
        return {item["dtype"] for item in self.layout.outputs} | _dtypes(self.layout.tree)


def _dtypes(tree: Tree) -> set[str]:
    match tree:
        case {"t": "tensor", "dtype": name}:
            return {name}
        case {"t": "list" | "tuple", "v": items}:
            return set[str]().union(*map(_dtypes, items))
        case {"t": "dict", "v": items}:
            return set[str]().union(*(_dtypes(item) for _, item in items))
        case _:
            return set()
