"""Input samples: inputs under a secret seed, kept as private masters, with expected outputs."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from tilewright.evaluator.judge import argument_trees as trees
from tilewright.evaluator.judge import reference as refs
from tilewright.evaluator.judge.comparison import (
    Expected,
    all_finite,
    chunks,
    error_of,
    expect,
)
from tilewright.evaluator.judge.element_errors import Masks, with_known
from tilewright.evaluator.judge.float64_oracle import run_double
from tilewright.evaluator.judge.memory_reader import private
from tilewright.evaluator.judge.number_formats import (
    FLOAT8,
    byte_size,
    is_inexact,
    nudged,
    parts,
    random_like,
    same_values,
)
from tilewright.evaluator.judge.output_placement import memories
from tilewright.evaluator.judge.random_seeds import has_sampled
from tilewright.evaluator.judge.reference import Reference
from tilewright.evaluator.judge.tf32_products import allow_for_tf32
from tilewright.evaluator.judge.undefined_elements import defined_elements
from tilewright.evaluator.judge.variations import FirstValue, vary
from tilewright.wire.frames import Fields, Tree
from tilewright.wire.names import MOVED
from tilewright.wire.tensors import Arena, Layout, build, dtype_name, elements, span

ILL_CONDITIONED = 1e-2
"""Inputs on which the reference itself is off by this share of the output's RMS are skipped."""
VARIATION_SEED = 0x5DEECE66D
"""Combined with the seed of a sample, so that its variation is not drawn from the same numbers."""
MAX_KNOWN_CASES = 64
"""Cases of which a judge keeps the infinite elements. It lives as long as its supervisor."""
SEEDS = 16
"""Other seeds that are tried: outputs of few elements may be the same for two of them."""

Tensors = list[torch.Tensor]
Windows = list[list[int]] | None
"""Byte ranges (start, stop) of a sample; `None`: all bytes."""


@dataclass
class AfterCall:
    """The inputs after the reference's call on a sample."""

    overwrites: set[int] = field(default_factory=set)
    """Arguments that the reference itself overwrites on these inputs."""
    written: tuple[int, ...] | None = None
    """Arguments whose content is an output; `None`: the reference was not evaluated yet."""
    returned: int = 0
    """Number of outputs that are returned."""


@dataclass
class Renewal:
    """The state on which renewed values of a sample depend."""

    first: list[FirstValue] = field(default_factory=list)
    """The arguments as they were first."""
    may_move: bool | None = None
    """Whether the reference accepts moved values where the generator repeats its own; `None`: not
    tried yet."""


@dataclass
class InputSample:
    """One set of inputs. `image` is the private master of the arena region, guards included."""

    params: Fields
    tree: Tree
    grad_tree: Tree
    image: Arena
    size: int
    forward_seed: int
    names: list[tuple[int, int, int]]
    """(first byte, past last byte, argument index) of each tensor."""
    expected: list[Expected] = field(default_factory=list)
    structure: str = "1"
    oracle: str = ""
    random: bool = False
    skipped: str = ""
    variation: str = "nominal"
    """Its variation, with the divisor of a weaker one; for a timed call that of its values."""
    after: AfterCall = field(default_factory=AfterCall)
    renewal: Renewal = field(default_factory=Renewal)

    @property
    def varied(self) -> bool:
        """Whether its values are a variation, on which the reference's error is another one."""
        return self.variation != "nominal"

    def arguments(self) -> list[Any]:
        """Return the inputs as views of the private master."""
        return list(build(self.tree, self.image, 0))

    def tensors(self) -> Tensors:
        """Return the inputs that are tensors, and not inside of another value."""
        return [value for value in self.arguments() if isinstance(value, torch.Tensor)]

    def written_tensors(self, args: list[Any]) -> Tensors:
        """Return the tensors of the arguments that are outputs."""
        return [leaf for index in self.after.written or () for leaf in trees.tensors(args[index])]

    def grad_outputs(self) -> Tensors:
        """Return the gradients of the outputs, as views of the private master."""
        return list(build(self.grad_tree, self.image, 0))

    def values(self) -> Tensors:
        """Return the expected outputs, which have no values in a sample of timed calls."""
        return [item.value for item in self.expected]

    def forget_values(self) -> None:
        """Keep only the form of the expected outputs, since timed calls see other values."""
        self.expected = [
            replace(
                item,
                value=_without_values(item.value),
                oracle=None,
                rounding_sensitivity=None,
                accepted=(),
            )
            for item in self.expected
        ]

    def preallocate_expected(self, device: str = "cuda") -> None:
        """Have the allocator of a device find memory for the expected outputs, and keep it."""
        # `empty_like` of a tensor without values imports 486 modules, 1.9 s in every judge.
        kinds = [(item.value.shape, item.value.dtype) for item in self.expected]
        _ = [torch.empty(shape, dtype=dtype, device=device) for shape, dtype in kinds]


def _without_values(value: torch.Tensor) -> torch.Tensor:
    # `empty_like` would make a dense tensor of one that is not, in another order than it told.
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")


def make_sample(
    reference: Reference,
    params: Fields,
    variation: str,
    seed: int,
    forward_seed: int,
    *,
    double: bool,
) -> InputSample:
    """Sample inputs and evaluate the reference, with `double` in float64 too.

    Raises:
        ProblemFailure: the generator fails, or the reference does on inputs that are not varied.
    """
    args = reference.arguments(params, seed)
    first = [FirstValue.of(value) for value in args]
    structured = [value.structured for value in first]
    generator = torch.Generator(reference.device).manual_seed(seed ^ VARIATION_SEED)
    varied = varied_arguments(args, structured, variation, generator)
    changed = any(new is not old for new, old in zip(varied, args, strict=True))
    grad_outputs = _grad_outputs(reference, varied, forward_seed, generator)
    sample = _lay_out(reference, params, varied, grad_outputs, forward_seed)
    sample.variation = variation
    sample.renewal.first = first
    if variation != "nominal" and not changed:
        sample.skipped = "no input may vary this way"
        return sample
    # The master has them, and what follows needs the memory.
    del args, varied
    try:
        expect_outputs(reference, sample, double=double)
    except refs.ProblemFailure as error:
        if variation == "nominal" or error.out_of_memory:
            raise
        sample.skipped = f"the reference refuses such inputs: {error}"
        return sample
    if variation == "nominal":
        _keep_infinite(reference, sample)
    else:
        sample.skipped = unsound(reference, sample)
    return sample


def _keep_infinite(reference: Reference, sample: InputSample) -> None:
    """Note which elements are infinite on nominal inputs; a case that is used again is kept."""
    known, case = reference.infinite, repr(sample.params)
    known.pop(case, None)
    masks = [_infinite(item.value) for item in sample.expected]
    if any(mask is not None for mask in masks):
        known[case] = masks
    while len(known) > MAX_KNOWN_CASES:
        known.pop(next(iter(known)))


def _infinite(value: torch.Tensor) -> torch.Tensor | None:
    """Return which elements are infinite, if any are and none is NaN."""
    if not value.is_floating_point() or value.dtype in FLOAT8 or all_finite(value):
        return None
    # On the host: a device has no memory for what is kept of each case.
    return None if bool(value.isnan().any()) else value.isinf().cpu()


def varied_arguments(
    args: list[Any],
    structured: list[bool],
    variation: str,
    generator: torch.Generator,
    *,
    thin: bool = False,
) -> list[Any]:
    """Return arguments with one variation, which structured ones have only if they are moved."""
    kept = [keep and variation != MOVED for keep in structured]
    return [
        value if stays else vary(value, variation, generator, structured=keep, thin=thin)
        for value, stays, keep in zip(args, kept, structured, strict=True)
    ]


def _grad_outputs(
    reference: Reference, args: list[Any], forward_seed: int, generator: torch.Generator
) -> Tensors:
    """Sample a gradient for each floating-point output, if the problem compares gradients."""
    if not reference.grads:
        return []
    outputs, _ = refs.run(reference, args, [], forward_seed)
    forward = outputs[: len(outputs) - len(reference.grads)]
    return [random_like(leaf, generator) for leaf in forward if is_inexact(leaf)]


def _lay_out(
    reference: Reference,
    params: Fields,
    args: list[Any],
    grad_outputs: Tensors,
    forward_seed: int,
) -> InputSample:
    layout, owners = Layout(), list[int]()
    tree: Tree = {"t": "list", "v": []}
    with refs.problem_step("laying out the inputs"):
        for index, value in enumerate(args):
            tree["v"].append(layout.describe(value))
            owners += [index] * (len(layout.items) - len(owners))
        grad_tree = layout.describe(grad_outputs)
        owners += range(len(args), len(args) + len(grad_outputs))
    image = private(reference.device, layout.size)
    elements(image, torch.uint8, len(image)).fill_(0xA5)
    layout.write(image)
    names = []
    for index, (item, value) in zip(owners, layout.items, strict=True):
        stop = item["offset"] + span(item["shape"], item["stride"]) * value.element_size()
        names.append((item["offset"], stop, index))
    return InputSample(params, tree, grad_tree, image, layout.size, forward_seed, names)


def expect_outputs(reference: Reference, sample: InputSample, *, double: bool) -> None:
    """Evaluate the reference on a sample, and note what is expected of its outputs."""
    args, grad_outputs = sample.arguments(), sample.grad_outputs()
    copies = trees.mapped(args, reference.modes.copy)
    values, sample.structure = refs.run_on(
        reference, args, copies, grad_outputs, sample.forward_seed, sample.after.written
    )
    if sample.after.written is None:
        sample.after.written = tuple(sorted(reference.written.known))
    sample.after.returned = len(values) - len(sample.written_tensors(copies))
    sample.after.overwrites = trees.changed(args, copies) | set(sample.after.written)
    del copies
    if reference.random is None or reference.stateful:
        _detect_randomness(reference, sample, args, grad_outputs, values)
    sample.random = bool(reference.random)
    known: Masks = [None] * len(values)
    if not sample.random:
        seed = sample.forward_seed
        known = defined_elements(reference, args, grad_outputs, seed, values, sample.after.written)
    expected = _expected(reference, sample, values, known, double=double)
    if not sample.random:
        expected = _allow_for_tf32(reference, sample, expected, known)
    sample.expected = [
        replace(item, defined=mask) for item, mask in zip(expected, known, strict=True)
    ]


def _allow_for_tf32(
    reference: Reference, sample: InputSample, expected: list[Expected], known: Masks
) -> list[Expected]:
    def evaluate() -> Tensors:
        given = sample.arguments(), sample.grad_outputs(), sample.forward_seed
        values, _ = refs.run(reference, *given, sample.after.written)
        return with_known(values, known, [item.value for item in expected])

    return allow_for_tf32(reference, sample.params, expected, evaluate)


def _expected(
    reference: Reference, sample: InputSample, values: Tensors, known: Masks, *, double: bool
) -> list[Expected]:
    """Return what is expected, with an oracle where one can be had; `known`: defined elements."""
    args, grad_outputs = sample.arguments(), sample.grad_outputs()
    oracles = None
    if double and not sample.random:
        oracles = run_double(
            reference, args, grad_outputs, sample.forward_seed, sample.after.written
        )
    if oracles is not None and [o.shape for o in oracles] == [v.shape for v in values]:
        sample.oracle = "float64"
        oracles = with_known(oracles, known, values)
        return [expect(*pair) for pair in zip(values, oracles, strict=True)]
    sample.oracle = "float32"
    if sample.random:
        return [expect(value, None) for value in values]
    others = [nudged(value) if isinstance(value, torch.Tensor) else value for value in args]
    moved, _ = refs.run(reference, others, grad_outputs, sample.forward_seed, sample.after.written)
    moved = with_known(moved, known, values)
    return [_without_oracle(*pair) for pair in zip(values, moved, strict=True)]


def _detect_randomness(
    reference: Reference,
    sample: InputSample,
    args: list[Any],
    grad_outputs: Tensors,
    values: Tensors,
) -> None:
    """Note whether outputs depend on the forward seed, and whether they differ without it too."""
    reference.random = reference.stateful = False
    seed = sample.forward_seed
    for other in range(seed + 1, seed + 1 + SEEDS):
        again, _ = refs.run(reference, args, grad_outputs, other, sample.after.written)
        reference.placement.note_kept(memories(values), again)
        sampled_any = has_sampled(reference.device, other)
        if _differ(values, again):
            once_more, _ = refs.run(reference, args, grad_outputs, other, sample.after.written)
            reference.random, reference.stateful = True, _differ(again, once_more)
            return
        if not sampled_any:
            return


def _without_oracle(value: torch.Tensor, moved: torch.Tensor) -> Expected:
    """Take the effect of one rounding of every input as the reference's error."""
    error = 0.0
    if is_inexact(value) and value.shape == moved.shape:
        error = error_of(value, moved)[0] * 4
    return Expected(value, None, error)


def _differ(values: Tensors, others: Tensors) -> bool:
    return any(not nearly_equal(a, b) for a, b in zip(values, others, strict=True))


def nearly_equal(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Tell whether floating-point outputs are equal up to a share of the largest element."""
    if same_values(a, b) or a.shape != b.shape or not is_inexact(a):
        return same_values(a, b)
    a, b = parts(a), parts(b)
    size = max(float(part.abs().nan_to_num_(0.0, 0.0, 0.0).max()) for part in chunks(a))
    return all(
        torch.allclose(one, other, rtol=1e-3, atol=1e-4 * size, equal_nan=True)
        for one, other in zip(chunks(a), chunks(b), strict=True)
    )


def unsound(reference: Reference, sample: InputSample) -> str:
    """Return why the reference cannot judge on these values; empty when it can.

    Elements that are infinite on nominal inputs too, such as masked ones, say nothing against it.
    """
    known = reference.infinite.get(repr(sample.params), [])
    for place, item in enumerate(sample.expected):
        value = parts(item.value)
        if not value.is_floating_point():
            continue
        if not all_finite(value):
            infinite = _infinite(value)
            usual = known[place] if place < len(known) else None
            if infinite is None or usual is None or not torch.equal(infinite, usual):
                return "the reference itself is not finite"
            value = value[~infinite.to(value.device)]
        squares = sum(float(part.double().square_().sum()) for part in chunks(value))
        rms = math.sqrt(squares / max(value.numel(), 1))
        if item.reference_error > ILL_CONDITIONED * rms and item.value.dtype == torch.float32:
            return "the reference itself is inaccurate"
    return ""


def described_outputs(sample: InputSample) -> tuple[list[Tree], int]:
    """Return dtype and shape of the outputs that are returned, and how many bytes they are."""
    values = [item.value for item in sample.expected[: sample.after.returned]]
    described = [{"dtype": dtype_name(v.dtype), "shape": list(v.shape)} for v in values]
    return described, sum(map(byte_size, values))
