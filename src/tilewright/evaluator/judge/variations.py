"""Variations of a drawn input: other values of the same shape. Needs torch and nothing else.

This file is also copied into reproducers, so that they draw what the judge drew.
"""

from __future__ import annotations

import torch

from tilewright.evaluator.judge.number_formats import FLOAT8, FLOAT8_CODES, from_parts, parts
from tilewright.wire.names import INPUT_VARIATIONS

SCALE = 64.0
"""A power of two: scaling by it rounds nothing, so structure survives exactly."""
OFFSET = 4.0
LOOKED_AT = 64
"""Number of rows that are checked for being sorted."""
LONG_ROW = 16
"""Elements from which on a row is no point, box or colour, whose places mean something."""
SWAPPED = 8
"""Number of elements that a perturbation exchanges between the halves of a tensor."""


def is_structured(value: torch.Tensor) -> bool:
    """Tell whether a tensor's values mean more than a sample: zeros, few values, sums to one.

    Such a tensor keeps its values under every variation, and is never shuffled.
    """
    codes, value = value.dtype in FLOAT8, parts(value)
    if not value.is_floating_point() or value.numel() == 0:
        return True
    flat = value.reshape(-1)[: 1 << 20]
    zeros = flat.numel() - int(flat.count_nonzero())
    finite = bool(torch.isfinite(flat.double().sum())) or bool(torch.isfinite(flat).all())
    if not finite or zeros > 0.01 * flat.numel():
        return True
    sample = flat[: 1 << 12].double()
    few = min(sample.numel() // 4, FLOAT8_CODES) if codes else sample.numel() // 4
    if sample.numel() > 8 and torch.unique(sample).numel() < few:
        return True
    if value.dim() > 1 and value.shape[-2] == value.shape[-1] > 1:
        first = value[(0,) * (value.dim() - 2)]
        if torch.equal(first, first.T) and torch.equal(value, value.mT):
            return True
    rows = value.reshape(-1, value.shape[-1])[:LOOKED_AT] if value.dim() else flat
    if rows.shape[-1] > 2 and bool((rows.diff(dim=-1) >= 0).all()):
        # Sorted.
        return True
    if value.dim() >= 1 and value.shape[-1] > 1 and bool(flat.min() >= 0):
        sums = value.sum(-1, dtype=torch.float64)
        return bool(torch.allclose(sums, torch.ones_like(sums), atol=1e-4))
    return False


def vary(value: torch.Tensor, variation: str, generator: torch.Generator) -> torch.Tensor:
    """Return `value` varied, in its layout; integer and structured tensors are not varied."""
    if variation == "nominal" or is_structured(value):
        return value
    changed = from_parts(_changed(parts(value), variation, generator), value)
    if 0 in value.stride():
        # Expanded: elements that share memory cannot differ.
        return changed.contiguous()
    fresh = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device)
    return fresh.copy_(changed)


def _changed(value: torch.Tensor, variation: str, generator: torch.Generator) -> torch.Tensor:
    if variation == "scale":
        return value * SCALE
    if variation == "sign":
        return -value
    if variation == "offset":
        return value + OFFSET
    if variation == "heavy_tail":
        noise = torch.rand(value.shape, generator=generator, device=generator.device)
        return torch.where(noise < 0.01, value * 100, value)
    if variation == "small_integers":
        small = torch.randint(-4, 5, value.shape, generator=generator, device=generator.device)
        return small.to(value.dtype)
    if variation == "edge_values":
        picks = torch.tensor([0.0, -0.0, 1.0, -1.0, 1e-30, -1e-30, 1e4, -1e4], device=value.device)
        index = torch.randint(
            0, len(picks), value.shape, generator=generator, device=generator.device
        )
        noise = torch.rand(value.shape, generator=generator, device=generator.device)
        return torch.where(noise < 0.05, picks[index].to(value.dtype), value)
    raise ValueError(f"unknown input variation {variation!r}; known: {', '.join(INPUT_VARIATIONS)}")


def perturb(value: torch.Tensor, generator: torch.Generator) -> None:
    """Give an unstructured tensor other values in place: roll it, exchange two stretches.

    Long rows are rolled in themselves, and then on into each other, so that no row occurs again.
    Short ones move as they are. No value is made or lost: only places change.
    """
    if value.dim() == 0 or value.numel() < 2:
        return
    choices = torch.randint(0, 1 << 40, (4,), generator=generator).tolist()
    flat, row = value.view(-1), value.shape[-1]
    if value.dim() > 1 and row >= LONG_ROW:
        value.copy_(torch.roll(value, 1 + choices[3] % (row - 1), -1))
        flat.copy_(torch.roll(flat, 1 + choices[0] % (flat.numel() - 1)))
    else:
        value.copy_(torch.roll(value, 1 + choices[0] % max(value.shape[0] - 1, 1), 0))
    half = flat.numel() // 2
    length = min(half, SWAPPED)
    first = choices[1] % (half - length + 1)
    second = half + choices[2] % (half - length + 1)
    kept = flat[first : first + length].clone()
    flat[first : first + length] = flat[second : second + length]
    flat[second : second + length] = kept
