"""Inputs of timed calls: every call gets values of its own from the problem's generator."""

from __future__ import annotations

from typing import Any

import torch

from tilewright.evaluator.judge import inputs
from tilewright.evaluator.judge import reference as refs
from tilewright.evaluator.judge.dynamic_shapes import keeps_shapes
from tilewright.evaluator.judge.reference import Reference
from tilewright.evaluator.judge.variations import like, moved, repeats
from tilewright.wire.frames import Tree
from tilewright.wire.tensors import Layout

EQUAL_WORK_BYTES = 1 << 30
"""Inputs up to this size are varied in any case. A device has no memory for a second copy of more,
and the time to make them varies by itself."""


def renew(
    reference: Reference,
    sample: inputs.InputSample,
    seed: int,
    forward_seed: int,
    variation: str,
    *,
    varied: bool,
    base: str = "nominal",
) -> bool:
    """Give a sample of timed calls new values of its generator; tell whether it has them.

    `variation` is computed in any case and used only if `varied`: both take the same time. Values
    that are not varied are those of `base`.
    A generator may give other shapes under another seed. Its values then fill the known shapes.
    Floating-point values that it gives under every seed are moved at random, unless the reference
    refuses other values. Where output shapes depend on values, only values that keep them are used.
    Those are the generator's, or else the sample's own, moved at random if possible.
    """
    sample.forward_seed = forward_seed
    args = reference.arguments(sample.params, seed)
    with refs.problem_step("laying out the inputs"):
        plain, tree = _laid_out(args)
    fresh = same_layout(tree, sample.tree)
    if not fresh:
        args = _refilled(args, sample)
        plain, tree = _laid_out(args)
    generator = torch.Generator(reference.device).manual_seed(seed ^ inputs.VARIATION_SEED)
    again = any(
        repeats(value, known.some) for value, known in zip(args, sample.renewal.first, strict=False)
    )
    if again and sample.renewal.may_move is not False:
        others = _moved(args, sample, generator)
        if sample.renewal.may_move is None:
            sample.renewal.may_move = _accepts(reference, others, forward_seed)
        args = others if sample.renewal.may_move else args
        plain, tree = _laid_out(args)
    if not keeps_shapes(reference, sample, args):
        fresh, args = False, _with_known_shapes(reference, sample, generator)
        plain, tree = _laid_out(args)
    sample.tree, sample.variation = tree, variation if varied else "nominal"
    structured = [known.structured for known in sample.renewal.first]
    if varied or sample.size <= EQUAL_WORK_BYTES:
        # In half of the calls a tail is thin: code that looks at some of the values misses it.
        thin = bool(seed & 1)
        if base != "nominal":
            usual = inputs.varied_arguments(args, structured, base, generator, thin=thin)
            (plain, _), sample.variation = _laid_out(usual), sample.variation if varied else base
        made = inputs.varied_arguments(args, structured, variation, generator, thin=thin)
        changed, _ = _laid_out(made if keeps_shapes(reference, sample, made) else args)
        plain = changed if varied else plain
    plain.write(sample.image)
    for value in sample.grad_outputs():
        noise = torch.randn(value.shape, generator=generator, device=value.device)
        value.copy_(noise)
    return fresh


def _refilled(args: list[Any], sample: inputs.InputSample) -> list[Any]:
    """Return the sample's arguments with the new values, as often as they fit, in its own shapes.

    A tensor with a structure keeps its values: an index may be valid for one length alone.
    """
    known = sample.arguments()
    if len(args) != len(known):
        return known
    found = []
    for old, new, first in zip(known, args, sample.renewal.first, strict=True):
        keeps = first.structured
        alike = isinstance(new, torch.Tensor) and not keeps and new.dtype == old.dtype
        if not alike or not new.numel():
            found.append(old.clone() if isinstance(old, torch.Tensor) else old)
            continue
        times = -(-old.numel() // new.numel())
        flat = new.reshape(-1).repeat(times)[: old.numel()]
        found.append(like(old).copy_(flat.view(old.shape)))
    return found


def _moved(args: list[Any], sample: inputs.InputSample, generator: torch.Generator) -> list[Any]:
    """Return arguments whose repeated tensors have values of their own."""
    return [
        moved(value, generator, structured=known.structured)
        if repeats(value, known.some)
        else value
        for value, known in zip(args, sample.renewal.first, strict=True)
    ]


def _with_known_shapes(
    reference: Reference, sample: inputs.InputSample, generator: torch.Generator
) -> list[Any]:
    """Return the sample's own arguments, moved at random if the output shapes allow it."""
    own = sample.arguments()
    others = [_permuted(value, generator) for value in own]
    return others if keeps_shapes(reference, sample, others) else own


def _permuted(value: Any, generator: torch.Generator) -> Any:  # noqa: ANN401 - any argument
    # A layout has the strides of its values, and an expanded tensor has no order of its own.
    if not isinstance(value, torch.Tensor) or torch.empty_like(value).stride() != value.stride():
        return value
    order = torch.randperm(value.numel(), generator=generator, device=value.device)
    return torch.empty_like(value).copy_(value.reshape(-1)[order].view(value.shape))


def _accepts(reference: Reference, args: list[Any], forward_seed: int) -> bool:
    try:
        refs.run(reference, args, [], forward_seed)
    except refs.ProblemFailure as error:
        if error.out_of_memory:
            raise
        return False
    return True


def _laid_out(args: list[Any]) -> tuple[Layout, Tree]:
    layout = Layout()
    return layout, {"t": "list", "v": [layout.describe(value) for value in args]}


def same_layout(a: Tree, b: Tree) -> bool:
    """Tell whether two trees differ at most in values that are no tensors."""
    if a["t"] != b["t"]:
        return False
    if a["t"] == "tensor":
        return a == b
    if a["t"] in ("list", "tuple"):
        pairs = list(zip(a["v"], b["v"], strict=False))
    elif a["t"] in ("dict", "object"):
        if [key for key, _ in a["v"]] != [key for key, _ in b["v"]]:
            return False
        pairs = [(one, other) for (_, one), (_, other) in zip(a["v"], b["v"], strict=True)]
    else:
        return True
    return len(a["v"]) == len(b["v"]) and all(same_layout(*pair) for pair in pairs)
