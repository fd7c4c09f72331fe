"""Memory for outputs that a caller hands over: what it holds before the call must not matter.

A generator fills such memory with zeros or leaves it as it is, and a candidate could rely on that.
Where the reference overwrites a tensor and computes the same from other values of it, every sample
gets random ones.
"""

from __future__ import annotations

import torch

from tilewright.evaluator.judge import argument_trees as trees
from tilewright.evaluator.judge import reference as refs
from tilewright.evaluator.judge.inputs import InputSample
from tilewright.evaluator.judge.number_formats import FLOAT8, same_values
from tilewright.evaluator.judge.reference import Reference
from tilewright.evaluator.judge.reference_state import undisturbed

MAX_BYTES = 1 << 30
"""Inputs up to this size are filled. A device may have no memory for the copies of more."""
SEED = 0x2545F4914F6CDD1D
"""Combined with the seed of a sample: else random values could be those of its own generator."""
DIFFERENT = 1 << 16
"""Random values that are made for one tensor."""
MAX_INTEGER = 100
"""Random integers are smaller, so that every type holds them."""


def fill_ignored(reference: Reference, sample: InputSample, seed: int) -> None:
    """Give random values to the tensors of a sample that the reference ignores and overwrites."""
    written = reference.written
    if not sample.after.overwrites or sample.random or sample.size > MAX_BYTES:
        return
    generator = torch.Generator(reference.device).manual_seed(seed ^ SEED)
    if written.ignored is None:
        with undisturbed(reference):
            written.ignored = _ignored(reference, sample, generator)
    leaves = trees.tensors(sample.arguments())
    for index in written.ignored:
        leaves[index].copy_(_noise(leaves[index], generator))


def _ignored(reference: Reference, sample: InputSample, generator: torch.Generator) -> set[int]:
    """Return the tensors that the reference overwrites with the same values whatever they hold."""
    args = sample.arguments()
    found, first = _run(reference, sample, args)
    ignored = set()
    for index, (before, after) in enumerate(zip(trees.tensors(args), first, strict=True)):
        if before.dtype in FLOAT8 or before.is_complex() or same_values(before, after):
            continue
        others = trees.mapped(args, torch.clone)
        leaf = trees.tensors(others)[index]
        leaf.copy_(_noise(leaf, generator))
        try:
            again, left = _run(reference, sample, others)
        except refs.ProblemFailure as error:
            if error.out_of_memory:
                raise
            continue
        pairs = [*zip(found, again, strict=True), (after, left[index])]
        if all(one.shape == other.shape and same_values(one, other) for one, other in pairs):
            ignored.add(index)
    return ignored


def _run(
    reference: Reference, sample: InputSample, args: list[object]
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Return the outputs of a call, and the tensors of its arguments as the call left them."""
    copies = trees.mapped(args, torch.clone)
    given = sample.grad_outputs(), sample.forward_seed, sample.after.written
    outputs, _ = refs.run_on(reference, args, copies, *given)
    return outputs, trees.tensors(copies)


def _noise(like: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return random values of a tensor's shape: some of them, repeated."""
    count, device = min(like.numel(), DIFFERENT), like.device
    if like.is_floating_point():
        some = torch.randn(count, generator=generator, device=device)
    else:
        most = 2 if like.dtype == torch.bool else MAX_INTEGER
        some = torch.randint(most, (count,), generator=generator, device=device)
    times = -(-like.numel() // max(count, 1))
    noise: torch.Tensor = some.to(like.dtype).repeat(times)[: like.numel()]
    return noise.view(like.shape)
