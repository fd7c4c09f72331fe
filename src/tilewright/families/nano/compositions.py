"""The operators and the 12 compositions of the family, eight of them for training.

Held-out problems differ from the others by their composition: no training problem has the same
operators in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Extra = Literal["row", "full", "weight"]
"""A further input: one value for each column, one for each element, or the weight of a product."""
FAMILY = "nano"
ENTRY = "compute"
"""The function that every program defines."""


@dataclass(frozen=True)
class Operation:
    """One step of a composition, as an expression in torch and in Triton."""

    name: str
    torch: str
    """`{v}` is the value so far, and `{e}` the further input."""
    triton: str = ""
    """Empty for reductions and products, which are no expressions of one element."""
    extra: Extra | None = None
    argument: str = ""
    """Name of the further input."""
    constant: float | None = None
    """A constant of the expression, written `{c}`."""

    @property
    def is_pointwise(self) -> bool:
        """Whether an element of the output depends on one element of the input."""
        return bool(self.triton)


OPERATORS = {
    item.name: item
    for item in (
        Operation("relu", "torch.relu({v})", "tl.maximum({v}, 0.0)"),
        Operation("silu", "torch.nn.functional.silu({v})", "{v} * tl.sigmoid({v})"),
        Operation("sigmoid", "torch.sigmoid({v})", "tl.sigmoid({v})"),
        Operation("scale", "{v} * {c}", "{v} * {c}", constant=1.5),
        Operation(
            "clamp",
            "torch.clamp({v}, -{c}, {c})",
            "tl.minimum(tl.maximum({v}, -{c}), {c})",
            constant=2.0,
        ),
        Operation("square", "{v} * {v}", "{v} * {v}"),
        Operation("bias", "{v} + {e}", "{v} + {e}", "row", "b"),
        Operation("gate", "{v} * {e}", "{v} * {e}", "full", "g"),
        Operation("residual", "{v} + {e}", "{v} + {e}", "full", "r"),
        Operation("softmax", "torch.softmax({v}, dim=-1)"),
        Operation(
            "rmsnorm", "{v} * torch.rsqrt(({v} * {v}).mean(dim=-1, keepdim=True) + {c})",
            constant=1e-06,
        ),
        Operation("linear", "torch.nn.functional.linear({v}, {e})", "", "weight", "w"),
    )
}  # fmt: skip
COMMUTING = frozenset(
    frozenset(pair)
    for pair in (
        ("relu", "scale"),
        ("relu", "clamp"),
        ("scale", "gate"),
        ("bias", "residual"),
    )
)
"""Pairs of operators that give the same result in both orders."""
Kind = Literal["pointwise", "reduction", "linear"]


@dataclass(frozen=True)
class Composition:
    """A problem: operators that are applied one after the other to `x`."""

    operators: tuple[Operation, ...]
    held_out: bool = False

    @property
    def name(self) -> str:
        return "_".join(item.name for item in self.operators)

    @property
    def id(self) -> str:
        """Return the id of its problem."""
        return f"{FAMILY}/{self.name}"

    @property
    def kind(self) -> Kind:
        names = {item.name for item in self.operators}
        if "linear" in names:
            return "linear"
        return "reduction" if names & {"softmax", "rmsnorm"} else "pointwise"

    @property
    def core(self) -> int | None:
        """Return the place of the operator that is not pointwise; `None` if all of them are."""
        places = [n for n, item in enumerate(self.operators) if not item.is_pointwise]
        return places[0] if places else None

    @property
    def extras(self) -> tuple[Operation, ...]:
        """Return the operators with a further input, in the order of the arguments."""
        return tuple(item for item in self.operators if item.extra is not None)

    @property
    def arguments(self) -> tuple[str, ...]:
        return ("x", *(item.argument for item in self.extras))


def _composed(text: str, *, held_out: bool = False) -> Composition:
    return Composition(tuple(OPERATORS[name] for name in text.split()), held_out)


COMPOSITIONS = (
    _composed("scale silu bias"),
    _composed("bias relu residual clamp"),
    _composed("gate sigmoid scale residual"),
    _composed("square bias silu"),
    _composed("scale softmax residual"),
    _composed("rmsnorm gate silu"),
    _composed("bias rmsnorm scale"),
    _composed("linear bias relu"),
    _composed("bias silu gate square", held_out=True),
    _composed("relu residual scale sigmoid", held_out=True),
    _composed("bias softmax scale", held_out=True),
    _composed("linear silu residual", held_out=True),
)


def composition_of(problem: str) -> Composition:
    """Return the composition of a problem's id; a KeyError if the family has none of that id."""
    return {item.id: item for item in COMPOSITIONS}[problem]


def swapped_pair(composition: Composition) -> int | None:
    """Return the first place whose operator gives another result after the next one.

    `None` if there is no such pair of pointwise operators.
    """
    for place, (one, two) in enumerate(
        zip(composition.operators, composition.operators[1:], strict=False)
    ):
        both_pointwise = one.is_pointwise and two.is_pointwise
        if both_pointwise and frozenset((one.name, two.name)) not in COMMUTING:
            return place
    return None
