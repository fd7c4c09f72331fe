"""What is known of inputs that the judge holds, and what it says of a call on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Answer", "InputSampleInfo"]


@dataclass(frozen=True)
class InputSampleInfo:
    """Inputs that the judge holds: how they lie in memory, not what they are."""

    name: str
    case: str
    variation: str
    seed: int
    forward_seed: int
    tree: dict[str, Any]
    grad_outputs: dict[str, Any]
    grads: list[int]
    size: int
    output_bytes: int
    outputs: list[dict[str, Any]]
    oracle: str
    random: bool
    stateful: bool
    """Whether what is random is what the reference keeps from call to call."""
    skipped: str
    call_s: float
    aliases: bool
    """Whether the reference itself returns a view of an input, or inputs are donated."""
    movable: int

    @property
    def slot_bytes(self) -> int:
        """Return the size of one slot of the input arena, in whole pages."""
        return -(-self.size // 4096) * 4096

    def dtypes(self) -> set[str]:
        """Return the dtypes of inputs and outputs."""
        return {item["dtype"] for item in self.outputs} | _dtypes(self.tree)


@dataclass(frozen=True)
class Answer:
    """What the judge says of one call: `wrong` is empty when the outputs are right."""

    wrong: str
    message: str
    error: float | None
    mutated: tuple[str, ...]


def _dtypes(tree: dict[str, Any]) -> set[str]:
    if tree["t"] == "tensor":
        return {tree["dtype"]}
    if tree["t"] in ("list", "tuple"):
        return set().union(*(_dtypes(item) for item in tree["v"]), set())
    if tree["t"] == "dict":
        return set().union(*(_dtypes(item) for _, item in tree["v"]), set())
    return set()
