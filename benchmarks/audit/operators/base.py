"""An operator: its inputs, its reference in plain torch, and the sizes that its users run."""

from __future__ import annotations

from dataclasses import dataclass

DTYPES = {"fp32": "torch.float32", "bf16": "torch.bfloat16"}
Case = dict[str, int | str]

TOKENS = 2048
"""Tokens of a call with the sizes of Llama 3 8B."""
PATCHES = 64 * 197
"""Rows of a call of ViT-S/16: 64 images of 196 patches and a class token."""
HIDDEN: tuple[Case, ...] = (
    {"name": "llama3_8b", "rows": TOKENS, "cols": 4096},
    {"name": "vit_small", "rows": PATCHES, "cols": 384},
)
MLP: tuple[Case, ...] = (
    {"name": "llama3_8b", "rows": TOKENS, "cols": 14336},
    {"name": "vit_small", "rows": PATCHES, "cols": 1536},
)
LLAMA, VIT = slice(0, 1), slice(1, 2)

TEMPLATE = """import torch
import torch.nn.functional as F

CASES = {cases}
ENTRY = "work"
{declared}DTYPE = {dtype}


def normal(generator, *shape):
    return torch.randn(*shape, generator=generator, dtype=DTYPE)


def inputs(case, generator):
    {inputs}


def reference({names}):
    {reference}
"""


@dataclass(frozen=True)
class Operator:
    """One operator. `inputs` and `reference` are bodies of functions, indented by four spaces."""

    name: str
    names: str
    """The arguments of the reference, in order."""
    inputs: str
    reference: str
    cases: tuple[Case, ...]
    grads: tuple[str, ...] = ()
    """Arguments that get a gradient in the cell with a backward pass."""
    overwritten_backward: tuple[str, ...] = ()
    """Arguments that the backward pass of a library may overwrite, as its documents say."""
    in_place: tuple[str, ...] = ()
    """Arguments that any call may overwrite, as models need them no more. Results may lie there."""


def problem_text(operator: Operator, dtype: str, *, backward: bool) -> str:
    """Return the problem of a cell as source text."""
    declared = f"GRADS = {list(operator.grads)}\n" if backward else ""
    writable = [*operator.in_place, *(operator.overwritten_backward if backward else ())]
    if writable:
        declared += f"DONATES = {writable}\n"
    return TEMPLATE.format(
        cases=list(operator.cases),
        declared=declared,
        dtype=DTYPES[dtype],
        inputs=operator.inputs,
        names=operator.names,
        reference=operator.reference,
    )
