"""Input samples: inputs under a secret seed, kept as private masters, with expected outputs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch

from tilewright.evaluator.judge import reference as refs
from tilewright.evaluator.judge.comparison import (
    Expected,
    all_finite,
    chunks,
    expect,
    with_sensitivity,
)
from tilewright.evaluator.judge.memory_reader import private
from tilewright.evaluator.judge.number_formats import (
    FLOAT8,
    is_inexact,
    nudged,
    parts,
    random_like,
    same_values,
    widened,
)
from tilewright.evaluator.judge.reference import Reference
from tilewright.evaluator.judge.variations import is_structured, perturb, vary
from tilewright.wire.frames import Fields, Tree
from tilewright.wire.tensors import Arena, Layout, build, dtype_name, elements, span, view

ILL_CONDITIONED = 1e-2
"""Inputs on which the reference itself is off by this share of the output's RMS are skipped."""
SEEDS = 16
"""Number of other seeds that are tried where random numbers are sampled and no output shows it.
Outputs of few elements may be the same for two seeds."""
RENEWED_S = 0.5
"""Seconds; inputs that take longer to sample are not sampled anew between timed calls."""
ROUNDINGS = 2
"""How often the inputs are rounded anew, to see how the outputs move."""
INTEGER_ROUNDINGS = (1.0, 1.0, 2.0, 2.0, 4.0, 4.0)
"""Sizes of the roundings where outputs are integers, which move at once or not at all. Those of a
candidate are as likely as those of the reference."""

Tensors = list[torch.Tensor]


@dataclass
class InputSample:
    """One set of inputs. `image` is the private master of the arena region, guards included."""

    tree: Tree
    grad_tree: Tree
    image: Arena
    size: int
    forward_seed: int
    names: list[tuple[int, int, int]]
    """(first byte, past last byte, argument index) of each tensor, to name what was overwritten."""
    expected: list[Expected] = field(default_factory=list)
    structure: str = "1"
    oracle: str = ""
    random: bool = False
    skipped: str = ""
    variation: str = "nominal"
    """Its variation, with the divisor of a weaker one."""
    overwrites: set[int] = field(default_factory=set)
    """Arguments that the reference itself overwrites on these inputs."""
    movable: list[Tree] = field(default_factory=list)
    """Descriptions of the unstructured tensors, which may be shuffled between timed calls."""
    renewed: Callable[[int], list[Any]] | None = None
    """Samples nominal inputs under another seed, where none may be shuffled."""

    def arguments(self) -> list[Any]:
        """Return the inputs as views of the private master."""
        return list(build(self.tree, self.image, 0))

    def tensors(self) -> Tensors:
        """Return the inputs that are tensors, and not inside of another value."""
        return [value for value in self.arguments() if isinstance(value, torch.Tensor)]

    def grad_outputs(self) -> Tensors:
        """Return the gradients of the outputs, as views of the private master."""
        return list(build(self.grad_tree, self.image, 0))

    def forget_values(self) -> None:
        """Keep only the form of the expected outputs, since timed calls see other values."""
        self.expected = [
            replace(
                item,
                value=torch.empty_like(item.value, device="meta"),
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

    def perturb(self, seed: int) -> None:
        """Change the values in place: roll them, swap elements; if none may be, sample anew."""
        if not self.movable and self.renewed is not None:
            layout, args = Layout(), self.renewed(seed)
            if {"t": "list", "v": [layout.describe(value) for value in args]} == self.tree:
                layout.write(self.image)
            return
        generator = torch.Generator().manual_seed(seed)
        for item in self.movable:
            perturb(view(self.image, item, 0), generator)


def make_sample(
    reference: Reference,
    params: Fields,
    variation: str,
    seed: int,
    forward_seed: int,
    *,
    double: bool,
) -> InputSample:
    """Sample inputs and evaluate the reference, with `double` in float64 too; raise if it fails."""
    start = time.monotonic()
    args = reference.arguments(params, seed)
    took_s = time.monotonic() - start
    generator = torch.Generator(reference.device).manual_seed(seed ^ 0x5DEECE66D)
    varied = [
        vary(value, variation, generator) if isinstance(value, torch.Tensor) else value
        for value in args
    ]
    changed = any(new is not old for new, old in zip(varied, args, strict=True))
    grad_outputs = _grad_outputs(reference, varied, forward_seed, generator)
    sample = _lay_out(reference, varied, grad_outputs, forward_seed)
    sample.variation = variation
    if variation == "nominal" and not grad_outputs and took_s < RENEWED_S:
        sample.renewed = partial(reference.arguments, params)
    if variation != "nominal" and not changed:
        sample.skipped = "no input may vary this way"
        return sample
    # The master has them, and what follows needs the memory.
    del args, varied
    _expect(reference, sample, double=double)
    if variation != "nominal":
        sample.skipped = _unsound(sample)
    return sample


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
    reference: Reference, args: list[Any], grad_outputs: Tensors, forward_seed: int
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
    names, movable = [], []
    for index, (item, value) in zip(owners, layout.items, strict=True):
        stop = item["offset"] + span(item["shape"], item["stride"]) * value.element_size()
        names.append((item["offset"], stop, index))
        if value.is_contiguous() and not is_structured(value):
            movable.append(item)
    return InputSample(tree, grad_tree, image, layout.size, forward_seed, names, movable=movable)


def _expect(reference: Reference, sample: InputSample, *, double: bool) -> None:
    args, grad_outputs = sample.arguments(), sample.grad_outputs()
    copies = refs.copied(args)
    values, sample.structure = refs.run_on(reference, copies, grad_outputs, sample.forward_seed)
    sample.overwrites = refs.changed(args, copies)
    del copies
    if reference.random is None or reference.stateful:
        _detect_randomness(reference, sample.forward_seed, args, grad_outputs, values)
    sample.random = bool(reference.random)
    oracles = None
    if double and not sample.random:
        oracles = refs.run_double(reference, args, grad_outputs, sample.forward_seed)
    if oracles is not None and [o.shape for o in oracles] == [v.shape for v in values]:
        sample.oracle = "float64"
        sample.expected = [expect(*pair) for pair in zip(values, oracles, strict=True)]
        return
    sample.oracle = "float32"
    if sample.random:
        sample.expected = [expect(value, None) for value in values]
        return
    others = [nudged(value) if isinstance(value, torch.Tensor) else value for value in args]
    moved, _ = refs.run(reference, others, grad_outputs, sample.forward_seed)
    sample.expected = [_without_oracle(*pair) for pair in zip(values, moved, strict=True)]


def _detect_randomness(
    reference: Reference, seed: int, args: list[Any], grad_outputs: Tensors, values: Tensors
) -> None:
    """Note whether outputs depend on the forward seed, and whether they differ without it too."""
    reference.random = reference.stateful = False
    for other in range(seed + 1, seed + 1 + SEEDS):
        again, _ = refs.run(reference, args, grad_outputs, other)
        has_sampled = refs.has_sampled(reference.device, other)
        if _differ(values, again):
            once_more, _ = refs.run(reference, args, grad_outputs, other)
            reference.random, reference.stateful = True, _differ(again, once_more)
            return
        if not has_sampled:
            return


def _without_oracle(value: torch.Tensor, moved: torch.Tensor) -> Expected:
    """Take the effect of one rounding of every input as the reference's error."""
    error = 0.0
    if is_inexact(value) and value.shape == moved.shape:
        error = expect(value, widened(moved)).reference_error * 4
    return Expected(value, None, error)


def widen_tolerance(reference: Reference, sample: InputSample) -> bool:
    """Note by how much each expected output moves when the inputs are rounded once.

    It is at least half the reference's worst error on these inputs, as rare elements may be hard
    for every implementation. Returns whether it could be determined and was not known before.
    """
    known = any(item.rounding_sensitivity is not None for item in sample.expected)
    integers = any(not is_inexact(item.value) for item in sample.expected)
    if known or sample.oracle != "float64" or any(len(e.accepted) > 1 for e in sample.expected):
        return False
    moves: Tensors = []
    for seed, size in enumerate(INTEGER_ROUNDINGS if integers else (1.0,) * ROUNDINGS):
        generator = torch.Generator(reference.device).manual_seed(seed)
        args = [_rounded(value, generator, size) for value in sample.arguments()]
        grad_outputs = [_rounded(value, generator, size) for value in sample.grad_outputs()]
        moved = refs.run_double(reference, args, grad_outputs, sample.forward_seed)
        if moved is None or [m.shape for m in moved] != [e.value.shape for e in sample.expected]:
            return False
        sample.expected = [
            item
            if is_inexact(item.value)
            else replace(item, accepted=(*item.accepted, other.to(item.value.dtype)))
            for item, other in zip(sample.expected, moved, strict=True)
        ]
        if seed >= ROUNDINGS:
            continue
        steps = [
            torch.zeros(()) if item.oracle is None else parts(other - item.oracle).abs_()
            for item, other in zip(sample.expected, moved, strict=True)
        ]
        # A device has no memory for many outputs that fill it.
        del moved
        pairs = zip(moves or steps, steps, strict=True)
        moves = [torch.maximum(most, step, out=most) for most, step in pairs]
    sample.expected = [
        item if item.oracle is None else with_sensitivity(item, most)
        for item, most in zip(sample.expected, moves, strict=True)
    ]
    return True


def resample_expected(reference: Reference, sample: InputSample) -> InputSample | None:
    """Return the sample with outputs expected of its present values and a wider tolerance.

    Integers may be what rounded inputs make of them. `None`: there is no oracle.
    """
    if sample.oracle != "float64" or sample.random:
        return None
    fresh = replace(sample, expected=[])
    _expect(reference, fresh, double=True)
    widened = widen_tolerance(reference, fresh)
    return fresh if widened or any(e.accepted for e in fresh.expected) else None


def _rounded(value: Any, generator: torch.Generator, size: float = 1.0) -> Any:  # noqa: ANN401
    """Return an inexact tensor in float64, each element rounded up or down by its eps.

    Elements of float8 are exact data, which no implementation rounds.
    """
    if not isinstance(value, torch.Tensor) or not is_inexact(value) or value.dtype in FLOAT8:
        return value
    signs = torch.randint(0, 2, value.shape, generator=generator, device=value.device) * 2 - 1
    return widened(value) * (1 + size * torch.finfo(value.dtype).eps * signs.double())


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


def _unsound(sample: InputSample) -> str:
    """Return why the reference cannot judge on these values; empty when it can."""
    for item in sample.expected:
        value = parts(item.value)
        if not value.is_floating_point():
            continue
        if not all_finite(value):
            return "the reference itself is not finite"
        squares = sum(float(part.double().square_().sum()) for part in chunks(value))
        rms = math.sqrt(squares / max(value.numel(), 1))
        if item.reference_error > ILL_CONDITIONED * rms and item.value.dtype == torch.float32:
            return "the reference itself is inaccurate"
    return ""


def overwritten(sample: InputSample, arena: Arena, base: int, donated: set[int]) -> list[str]:
    """Return what in the arena differs from the master: argument names, or the space between.

    Every implementation may overwrite the arguments that the reference itself overwrites.
    """
    size = sample.size
    if _same_bytes(arena, base, sample.image, size):
        return []
    there = elements(arena, torch.uint8, size, base)
    here = elements(sample.image, torch.uint8, size)
    different = there != here
    found, covered = [], torch.zeros_like(different)
    for start, stop, index in sample.names:
        covered[start:stop] = True
        if index not in donated | sample.overwrites and bool(different[start:stop].any()):
            found.append(f"input {index}")
    if bool((different & ~covered).any()):
        found.append("memory around the inputs")
    return found


def _same_bytes(arena: Arena, base: int, image: Arena, size: int) -> bool:
    """Compare `size` bytes, eight at a time: memoryview compares them one by one."""
    eights, rest = divmod(size, 8)
    parts = [(torch.int64, eights, 0)] + [(torch.uint8, rest, size - rest)] * bool(rest)
    return all(
        torch.equal(elements(arena, kind, count, base + start), elements(image, kind, count, start))
        for kind, count, start in parts
    )


def described_outputs(sample: InputSample) -> tuple[list[Tree], int]:
    """Return dtype and shape of the expected outputs, and how many bytes they are."""
    values = [item.value for item in sample.expected]
    described = [{"dtype": dtype_name(v.dtype), "shape": list(v.shape)} for v in values]
    return described, sum(map(byte_size, values))


def byte_size(value: torch.Tensor) -> int:
    """Return the bytes of a tensor as if it were dense: `nbytes` refuses sparse ones."""
    return value.numel() * value.element_size()
