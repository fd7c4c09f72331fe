"""Float8 and complex tensors, in a form in which torch can compute and compare them.

torch stores float8 and converts it, but adds, negates and sums none of it. Its comparisons know no
complex tolerance. This file is also copied into reproducers.
"""

from __future__ import annotations

from typing import Any

import torch

FLOAT8 = (torch.float8_e4m3fn, torch.float8_e5m2)
"""The formats of eight bits that torch computes with on current GPUs."""
FLOAT8_STEPS = 1.0
"""Number of steps of the format by which a float8 element may differ. Two correct implementations
that differ in their last bits before they round differ by one step, and never by two."""
FLOAT8_SMALL = 1 / 16
"""Smaller float8 elements have the tolerance of one of this size, in units of their row's RMS.
It is the error of an intermediate result in bfloat16, in steps of the format."""
FLOAT8_DIFFERING = 0.25
"""Largest share of a float8 output that may differ from the oracle, each element by one step. With
intermediate results in bfloat16 up to 9 % differ (docs/lab/2026-11-25-float8-steps.md)."""
FLOAT8_REFERENCE_FACTOR = 4.0
"""Factor by which more elements may differ than differ in the reference's own output."""
FLOAT8_COUNTED = 256
"""Elements from which on the share of differing ones is compared."""
FLOAT8_CODES = 16
"""Number of different values up to which a float8 tensor holds codes, and no sample."""
ROUNDINGS = 2
"""How often the inputs are rounded anew."""
INTEGER_ROUNDINGS = (1.0, 1.0, 2.0, 2.0, 4.0, 4.0)
"""Sizes of the roundings where outputs are integers, which move at once or not at all."""
MORE_INTEGER_ROUNDINGS = (2.0, 4.0) * 9
"""Further ones where few elements move. An element on the limit between two integers moves only in
some of the directions: a quotient only if both of its numbers move apart."""


def parts(value: torch.Tensor) -> torch.Tensor:
    """Return the numbers of a tensor: float8 in float32, complex as real and imaginary parts.

    The two parts of a complex element are next to each other in the last dimension.
    """
    if value.dtype in FLOAT8:
        return value.float()
    if value.is_complex():
        pairs = torch.view_as_real(value.resolve_conj())
        return pairs.flatten(-2) if value.dim() else pairs
    return value


def from_parts(numbers: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Return `numbers`, as `parts` made them, in the dtype and shape of `like`.

    A number beyond a float8 format becomes the largest of that format.
    """
    if like.dtype in FLOAT8:
        most = torch.finfo(like.dtype).max
        return numbers.clamp(-most, most).to(like.dtype)
    if like.is_complex():
        return torch.view_as_complex(numbers.reshape(*like.shape, 2).contiguous())
    return numbers


def is_inexact(value: torch.Tensor) -> bool:
    """Tell whether elements are rounded: floating-point or complex ones."""
    return value.is_floating_point() or value.is_complex()


def widened(value: torch.Tensor) -> torch.Tensor:
    """Return a tensor in float64 or complex128; integers stay as they are."""
    if value.is_complex():
        return value.to(torch.complex128)
    return value.double() if value.is_floating_point() else value


def nudged(value: torch.Tensor) -> torch.Tensor:
    """Return a tensor with each element one rounding smaller; float8 and integers are exact data.

    Larger elements could leave the domain of the reference: a probability of 1, or a cosine.
    """
    if not is_inexact(value) or value.dtype in FLOAT8:
        return value
    return value * (1 - torch.finfo(value.dtype).eps)


def rounded(value: Any, generator: torch.Generator, size: float = 1.0) -> Any:  # noqa: ANN401
    """Return an inexact tensor in float64, each element rounded up or down by its eps.

    No real element becomes larger than the largest: it is rounded towards zero instead. A
    probability above 1 leaves the domain of the reference, and on a device that ends the process.
    Elements of float8 are exact data, which nothing rounds.
    """
    if not isinstance(value, torch.Tensor) or not is_inexact(value) or value.dtype in FLOAT8:
        return value
    signs = torch.randint(0, 2, value.shape, generator=generator, device=value.device) * 2 - 1
    wide, step = widened(value), size * torch.finfo(value.dtype).eps
    found = wide * (1 + step * signs.double())
    if value.is_complex() or not value.numel():
        return found
    most = wide.nan_to_num(0.0, 0.0, 0.0).abs().max()
    return torch.where(found.abs() > most, wide * (1 - step), found)


def random_like(leaf: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return normal random numbers in the shape and dtype of a tensor."""
    kind = leaf.dtype if leaf.is_complex() else None
    sampled = torch.randn(leaf.shape, generator=generator, device=leaf.device, dtype=kind)
    return sampled.to(leaf.dtype)


def same_values(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Tell whether two tensors have one dtype, one shape and equal elements."""
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    return torch.equal(parts(one), parts(other))


def sizes(numbers: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return the size to which the tolerance of each element is relative.

    It is at least the RMS of the element's row, for float8 a share of that. Both parts of a complex
    element have its magnitude.
    """
    size = numbers.abs()
    if dtype.is_complex:
        pairs = numbers.unflatten(-1, (-1, 2))
        size = pairs.square().sum(-1, keepdim=True).sqrt().expand_as(pairs).flatten(-2)
    if numbers.dim() == 0:
        return size
    row = size.square().mean(-1, keepdim=True).sqrt()
    return torch.maximum(size, row * FLOAT8_SMALL if dtype in FLOAT8 else row)


def least_step(dtype: torch.dtype) -> float:
    """Return the distance of the smallest numbers of a float8 format; 0 for other dtypes."""
    if dtype not in FLOAT8:
        return 0.0
    known = torch.finfo(dtype)
    return float(known.smallest_normal) * float(known.eps)


def differing(
    value: torch.Tensor, oracle: torch.Tensor | None, got: torch.Tensor, slack: float
) -> str:
    """Return why too many elements of a float8 output differ; empty if few do.

    An error below one step shows in no single element, but in how many of them are rounded to the
    next number.
    """
    count = value.numel()
    if count < FLOAT8_COUNTED:
        return ""
    wanted = value if oracle is None else oracle.to(value.dtype)
    reference = _share(value, wanted)
    allowed = slack * max(FLOAT8_DIFFERING, FLOAT8_REFERENCE_FACTOR * reference)
    found = _share(got, wanted)
    if found <= allowed:
        return ""
    return (
        f"{found:.3g} of the elements differ by one step of the format, "
        f"at most {allowed:.3g} may; {reference:.3g} of the reference's own do"
    )


def _share(one: torch.Tensor, other: torch.Tensor) -> float:
    different = (one != other) & ~(torch.isnan(one) & torch.isnan(other))
    return float(different.double().mean())


def byte_size(value: torch.Tensor) -> int:
    """Return the bytes of a tensor as if it were dense: `nbytes` refuses sparse ones."""
    return value.numel() * value.element_size()
