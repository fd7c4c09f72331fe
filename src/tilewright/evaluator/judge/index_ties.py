"""Which inputs decide between indices: of two places with equal values, either is right.

A mask has equal values at most places, and the scores that it masks have not. So an input whose
values tie excuses another index only if no other input decides.
"""

from __future__ import annotations

from typing import Any

import torch

from tilewright.evaluator.judge import argument_trees as trees
from tilewright.evaluator.judge import reference as refs
from tilewright.evaluator.judge.inputs import InputSample
from tilewright.evaluator.judge.integer_comparison import names_ties
from tilewright.evaluator.judge.reference import Reference
from tilewright.evaluator.judge.reference_state import undisturbed


def are_ties(
    reference: Reference,
    sample: InputSample,
    place: int,
    value: torch.Tensor,
    output: torch.Tensor,
) -> bool:
    """Tell whether the output at `place` names places that are as right as those of `value`."""

    def decides(index: int) -> bool:
        args = with_other_order(sample.arguments(), index)
        given = args, sample.grad_outputs(), sample.forward_seed, sample.after.written
        try:
            with undisturbed(reference):
                others, _ = refs.run(reference, *given)
        except refs.ProblemFailure as error:
            if error.out_of_memory:
                raise
            return False
        return not torch.equal(others[place], value)

    return names_ties(value, output, trees.tensors(sample.arguments()), decides)


def with_other_order(args: list[Any], index: int) -> list[Any]:
    """Return arguments in which the values of one tensor have changed places, in a fixed order."""
    count = -1

    def reordered(value: torch.Tensor) -> torch.Tensor:
        nonlocal count
        count += 1
        if count != index:
            return value
        generator = torch.Generator(value.device).manual_seed(index)
        order = torch.randperm(value.numel(), generator=generator, device=value.device)
        return value.reshape(-1)[order].view(value.shape)

    return list(trees.mapped(args, reordered))
