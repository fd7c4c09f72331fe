"""The tolerance of ill-conditioned inputs, which is computed only where an output is off."""

from __future__ import annotations

from dataclasses import replace

import torch

from tilewright.evaluator.judge.comparison import (
    MAX_SENSITIVITY,
    SENSITIVITY_FACTOR,
    Expected,
    count_of,
    in_parts,
    percentile,
    row_parts,
    tolerance,
    with_sensitivity,
    zero_where_infinite,
)
from tilewright.evaluator.judge.element_errors import FEW, TAIL_SHARE, with_known
from tilewright.evaluator.judge.float64_oracle import run_double
from tilewright.evaluator.judge.inputs import InputSample, Tensors, expect_outputs
from tilewright.evaluator.judge.integer_comparison import OtherIntegers
from tilewright.evaluator.judge.number_formats import (
    INTEGER_ROUNDINGS,
    MORE_INTEGER_ROUNDINGS,
    ROUNDINGS,
    is_inexact,
    parts,
    rounded,
)
from tilewright.evaluator.judge.reference import Reference


def excludes_widening(expected: Expected, output: torch.Tensor) -> bool:
    """Tell whether an output would stay wrong whatever its sensitivity to rounding is.

    More elements are wrong than any rule excuses, by more than `MAX_SENSITIVITY` allows. Elements
    that are not finite do not count: `compare` looks at them first.
    """
    (output,) = with_known([output], [expected.defined], [expected.value])
    expected, output = in_parts(expected), parts(output)
    if expected.oracle is None or output.shape != expected.oracle.shape:
        return False
    wrong = 0
    for _, part, got, _ in row_parts(expected, output, None):
        assert part.oracle is not None
        size = percentile(zero_where_infinite(part.oracle).abs().reshape(-1), 0.5)
        allowed = tolerance(part, part.oracle)
        allowed = allowed.clamp_min_(SENSITIVITY_FACTOR * MAX_SENSITIVITY * size)
        error = zero_where_infinite((got.double() - part.oracle).abs_())
        wrong += count_of(error > allowed)
    return wrong > max(TAIL_SHARE, FEW) * output.numel() + 1


def widen_tolerance(reference: Reference, sample: InputSample) -> bool:
    """Note by how much each expected output moves when the inputs are rounded once.

    It is at least half the reference's worst error on these inputs: rare elements may be hard.
    Returns whether it could be determined and was not known before.
    """
    known = any(item.rounding_sensitivity is not None for item in sample.expected)
    integers = any(not is_inexact(item.value) for item in sample.expected)
    if known or sample.oracle != "float64" or any(len(e.accepted) > 1 for e in sample.expected):
        return False
    moves: Tensors = []
    sizes = INTEGER_ROUNDINGS + MORE_INTEGER_ROUNDINGS if integers else (1.0,) * ROUNDINGS
    for seed, size in enumerate(sizes):
        if seed == len(INTEGER_ROUNDINGS) and not _moves_few(sample):
            break
        generator = torch.Generator(reference.device).manual_seed(seed)
        args = [rounded(value, generator, size) for value in sample.arguments()]
        grad_outputs = [rounded(value, generator, size) for value in sample.grad_outputs()]
        moved = run_double(reference, args, grad_outputs, sample.forward_seed, sample.after.written)
        if moved is None or [m.shape for m in moved] != [e.value.shape for e in sample.expected]:
            if seed >= len(INTEGER_ROUNDINGS):
                break
            return False
        masks, values = zip(*((item.defined, item.value) for item in sample.expected), strict=True)
        moved = with_known(moved, list(masks), values)
        sample.expected = [
            item
            if is_inexact(item.value)
            else replace(item, accepted=(*item.accepted, _others(item, other)))
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


def _others(item: Expected, moved: torch.Tensor) -> OtherIntegers:
    return OtherIntegers.of(item.value, moved.to(item.value.dtype))


def _moves_few(sample: InputSample) -> bool:
    """Tell whether rounding moves few integers, so that further roundings cost little memory."""
    return all(other.is_sparse for item in sample.expected for other in item.accepted)


def resample_expected(reference: Reference, sample: InputSample) -> InputSample | None:
    """Return the sample with what is expected of its present values, and a wider tolerance.

    Integers may be those of rounded inputs. `None`: it shows nothing new.
    """
    if sample.random:
        return None
    fresh = replace(sample, expected=[])
    expect_outputs(reference, fresh, double=sample.oracle == "float64")
    if sample.oracle != "float64":
        return fresh
    widened = widen_tolerance(reference, fresh)
    return fresh if widened or any(e.accepted for e in fresh.expected) else None
