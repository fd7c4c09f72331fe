"""Variations of a drawn input: other values of the same shape. Needs torch and nothing else.

This file is also copied into reproducers, so that they draw what the judge drew.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from tilewright.evaluator.judge.number_formats import FLOAT8, FLOAT8_CODES, from_parts, parts
from tilewright.wire.names import HIGHEST_PEAK, INPUT_VARIATIONS, MOVED, PEAKED

SCALE = 64.0
"""A power of two: scaling by it rounds nothing, so structure survives exactly."""
SCALE_DOWN = 1 / 64
ABOVE_HALF_RANGE = 2.0**17
"""Twice the largest value of float16, and a value of float32 whose fourth power is finite."""
BELOW_HALF_RANGE = 2.0**-20
"""A sixteenth of the smallest normal value of float16, which keeps four bits or fewer of it."""
OFFSET = 4.0
PARTS = 12
"""Number of parts of a dimension that differ in mean and scale. An eighth of a dimension holds
more than one of them, and their edges are at secret places."""
PERIOD = 8
"""Number of residue classes of indices that differ in scale: every second element of a dimension
is no sample of the others."""
CONTRAST = 2.0
"""Binary logarithm of the largest factor of a part of the last dimension; half of it of others."""
PEAK_EXPONENT = 6.0
"""Binary logarithm of the largest factor of a peak. Code that omits whole stretches of a dimension
at regular places sees all parts. It misses most peaks of such a length."""
SHIFT = 2.0
"""Largest mean of a part, in units of the tensor's standard deviation."""
FACTORS = {
    "scale": SCALE,
    "scale_down": SCALE_DOWN,
    "above_half_range": ABOVE_HALF_RANGE,
    "below_half_range": BELOW_HALF_RANGE,
    "sign": -1.0,
}
WEAKER = {
    "scale": ("scale", "scale/4", "scale/16"),
    "above_half_range": ("above_half_range", "above_half_range/32", "above_half_range/1024"),
    "offset": ("offset", "offset/8"),
    "heavy_tail": ("heavy_tail", "heavy_tail/10"),
    "edge_values": ("edge_values", "edge_values/1000"),
    "uneven_parts": ("uneven_parts", "uneven_parts/2"),
}
"""For a variation, what is tried in turn until the reference can judge. The number divides the
factor. Uneven parts are moved into the range of the tensor's own values instead."""
FEW_VALUES = 64
"""Number of different values from which on a tensor of a short type has more than a few."""
SINGLE_BYTES = 4
WIDE_RANGE = (torch.float32, torch.float64, torch.bfloat16)
"""Types that hold larger values than float16."""
HEAVY_SHARE = 0.01
"""Share of the elements that a heavy tail makes large."""
FEW_OUTLIERS = 8
"""Large elements of a thin tail, on average. Code that looks at one element in 64 misses all of
them in 88 % of calls, and takes them for nominal."""
MIXER = 2_654_435_761
"""Odd factor of Knuth's multiplicative hashing, which spreads consecutive numbers."""
EDGE_SHARE = 0.05
"""Share of the elements that edge values replace."""
SAMPLE = 1 << 16
"""Elements from which the standard deviation of a tensor is estimated."""
COMPARED = 1024
"""Elements of a tensor by which a later sample counts as equal to the first."""
JITTER = 0.25
"""Width of the random factors of a tensor that is the same in every sample. Each element moves by
up to an eighth, so that no output follows from an earlier one."""
LOOKED_AT = 64
"""Number of rows that are checked for being sorted."""


def is_structured(value: torch.Tensor) -> bool:
    """Tell whether a tensor's values mean more than a sample: zeros, few values, sums to one.

    Such a tensor keeps its values under every variation.
    """
    codes, value = value.dtype in FLOAT8, parts(value)
    if not value.is_floating_point() or value.numel() == 0:
        return True
    flat = value.reshape(-1)[: 1 << 20]
    if value.element_size() < SINGLE_BYTES:
        flat = flat.float()
    zeros = flat.numel() - int(flat.count_nonzero())
    finite = bool(torch.isfinite(flat.double().sum())) or bool(torch.isfinite(flat).all())
    if not finite or zeros > 0.01 * flat.numel():
        return True
    if _has_few_values(flat[: 1 << 12], value.dtype, codes=codes):
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


def _has_few_values(sample: torch.Tensor, kind: torch.dtype, *, codes: bool) -> bool:
    """Tell whether values repeat more often than a sample of this type does."""
    known = torch.unique(sample.double())
    if codes:
        return sample.numel() > PERIOD and known.numel() < min(sample.numel() // 4, FLOAT8_CODES)
    if sample.numel() <= PERIOD or known.numel() >= sample.numel() // 4:
        return False
    whole = bool((known == known.round()).all())
    if whole or kind in (torch.float32, torch.float64):
        return True
    # A large sample holds most of the values that the type has between two others.
    size = float(known.abs().max())
    steps = float(known[-1] - known[0]) / (torch.finfo(kind).eps * size / 2)
    return bool(known.numel() < min(FEW_VALUES, steps / 4))


def vary(
    value: torch.Tensor,
    variation: str,
    generator: torch.Generator,
    *,
    structured: bool | None = None,
    thin: bool = False,
) -> torch.Tensor:
    """Return `value` varied, in its layout; integer and structured tensors are not varied.

    `MOVED` is the exception: other values in the same range, also of structured tensors.
    `structured`, if given, is what `is_structured` has found before. A tail that is `thin` changes
    a few elements only, and only where `thin`, `PEAKED` parts have their peak.
    """
    if variation == MOVED:
        dense = isinstance(value, torch.Tensor) and value.layout == torch.strided
        if not dense or not value.is_floating_point():
            return value
        keep = is_structured(value) if structured is None else structured
        return moved(value, generator, structured=keep)
    if variation == "nominal" or (is_structured(value) if structured is None else structured):
        return value
    name, _, divisor = variation.partition("/")
    if name.endswith("_half_range") and parts(value).dtype not in WIDE_RANGE:
        # It has the range of float16, or a smaller one.
        return value
    made = _changed(parts(value), name, float(divisor or 1), generator, thin=thin)
    changed = from_parts(made.to(parts(value).dtype), value)
    if 0 in value.stride():
        # Expanded: elements that share memory cannot differ.
        return changed.contiguous()
    if changed.stride() == value.stride() and changed is not value:
        return changed
    return like(value).copy_(changed)


def like(value: torch.Tensor) -> torch.Tensor:
    """Return fresh memory in the layout of a tensor, also of a slice that is not dense."""
    if 0 in value.stride():
        return torch.empty_like(value, memory_format=torch.contiguous_format)
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device)


def _changed(
    value: torch.Tensor,
    variation: str,
    divisor: float,
    generator: torch.Generator,
    *,
    thin: bool,
) -> torch.Tensor:
    factor = FACTORS.get(variation)
    if factor is not None:
        return value * (factor / divisor)
    if variation == "offset":
        return value + OFFSET / divisor
    if variation in ("uneven_parts", PEAKED, HIGHEST_PEAK):
        made = _uneven(value, generator, bounded=divisor > 1)
        highest = variation == HIGHEST_PEAK
        if value.dim() and (highest or (thin and variation == PEAKED)):
            made = made * _peak(value.shape, generator, highest=highest).to(value.device)
        return made
    if variation == "heavy_tail":
        share = min(FEW_OUTLIERS / max(value.numel(), 1), HEAVY_SHARE) if thin else HEAVY_SHARE
        made, places = _with_places(value, share, generator)
        made[places] *= 100 / divisor
        return made.view(value.shape)
    if variation == "small_integers":
        return _small_integers(value, generator)
    if variation == "edge_values":
        most = 1e4 / divisor
        picks = torch.tensor([0.0, -0.0, 1.0, -1.0, 1e-30, -1e-30, most, -most])
        made, places = _with_places(value, EDGE_SHARE, generator)
        # By the place: one that comes twice gets one value, on every device.
        secret = int(torch.randint(1 << 30, (), generator=generator, device=generator.device))
        kinds = ((places + secret) * MIXER >> 16) % len(picks)
        made[places] = picks.to(value.device, value.dtype)[kinds]
        return made.view(value.shape)
    raise ValueError(f"unknown input variation {variation!r}; known: {', '.join(INPUT_VARIATIONS)}")


def _with_places(
    value: torch.Tensor, share: float, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a flat copy and at most this share of its indices, at random.

    Only as many random numbers are made as there are places.
    """
    count = value.numel()
    number = math.ceil(share * count)
    places = torch.randint(max(count, 1), (number,), generator=generator, device=generator.device)
    flat = value.reshape(-1)
    made = flat.clone() if flat.data_ptr() == value.data_ptr() else flat
    return made, places.to(value.device)


def _small_integers(value: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return the integers from -4 to 4 at random: eight of each random number of 64 bits."""
    numbers = torch.empty(-(-value.numel() // 8), dtype=torch.int64, device=generator.device)
    octets = numbers.random_(-(2**63), None, generator=generator).view(torch.uint8)[: value.numel()]
    wide = torch.float64 if value.dtype == torch.float64 else torch.float32
    small = octets.to(wide).mul_(9 / 256).floor_().sub_(4)
    return small.to(value.device, value.dtype).view(value.shape)


def _uneven(value: torch.Tensor, generator: torch.Generator, *, bounded: bool) -> torch.Tensor:
    """Give the parts of each dimension other means and scales, at secret places.

    Values that are all positive stay positive. With `bounded`, all stay within their range.
    """
    made = value.double() if value.dtype == torch.float64 else value.float()
    low, high = made.aminmax()
    # The standard deviation of a part of a large tensor is near enough.
    some = made.reshape(-1)[:: max(made.numel() // SAMPLE, 1)]
    spread = SHIFT * (some.std() if some.numel() > 1 else made.abs().max())
    positive = bool(low >= 0)
    scale = torch.ones((), device=value.device)
    shift = torch.zeros((), device=value.device)
    for dim, size in enumerate(value.shape):
        contrast = CONTRAST if dim == value.dim() - 1 else CONTRAST / 2
        shape = [-1 if other == dim else 1 for other in range(value.dim())]
        factors, means = _parts_of(size, contrast, generator)
        if positive:
            means = means.abs()
        scale = scale * factors.to(value.device).reshape(shape)
        shift = shift + (means.to(value.device) / value.dim()).reshape(shape)
    if value.dim() == 0:
        scale = scale * 2.0 ** float(_between(1, CONTRAST, generator))
    made = made * scale + shift * spread
    if bounded:
        least, most = made.min(), made.max()
        made = low + (made - least) * ((high - low) / (most - least).clamp_min(1e-30))
        made = made.clamp_(low, high)
    return made


def _parts_of(
    size: int, contrast: float, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a factor and a mean for each index of a dimension."""
    device = generator.device
    edges = torch.rand(PARTS - 1, generator=generator, device=device).mul_(size).sort().values
    places = torch.arange(size, device=device)
    part = torch.searchsorted(edges, places.to(edges.dtype), right=True)
    exponents = _between(PARTS, contrast, generator)[part]
    exponents = exponents + _between(PERIOD, contrast / 2, generator)[places % PERIOD]
    return torch.exp2(exponents), _between(PARTS, 1.0, generator)[part]


def _peak(shape: torch.Size, generator: torch.Generator, *, highest: bool) -> torch.Tensor:
    """Return factors of the indices of one dimension: 1 outside of a stretch, and large in it.

    The stretch holds half of the sum of the squares, if its factor is not the largest one.
    """
    which, how_long, where = torch.rand(3, generator=generator, device=generator.device).tolist()
    dim = min(int(which * len(shape)), len(shape) - 1)
    size = shape[dim]
    length = max(int(max(size, 1) ** how_long), 1)
    start = int(where * max(size - length + 1, 1))
    factors = torch.ones(size, device=generator.device)
    exponent = min(0.5 * math.log2(max(size, 1) / length), PEAK_EXPONENT)
    factors[start : start + length] = 2.0 ** (PEAK_EXPONENT if highest else exponent)
    return factors.reshape([-1 if other == dim else 1 for other in range(len(shape))])


def _between(count: int, most: float, generator: torch.Generator) -> torch.Tensor:
    """Return uniform numbers between -most and most."""
    return (torch.rand(count, generator=generator, device=generator.device) * 2 - 1) * most


def some_elements(value: object) -> torch.Tensor | None:
    """Return a copy of some elements of a dense tensor of floating-point numbers."""
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
        return None
    if value.dtype in FLOAT8 or not (value.is_floating_point() or value.is_complex()):
        return None
    flat = value.detach().reshape(-1)
    return flat[:: max(flat.numel() // COMPARED, 1)].clone()


@dataclass(frozen=True)
class FirstValue:
    """An argument of a first sample."""

    structured: bool
    """Whether its values mean more than a sample, so that none is varied."""
    some: torch.Tensor | None
    """Some of its elements, if they are floating-point numbers."""

    @classmethod
    def of(cls, value: object) -> FirstValue:
        """Look at an argument."""
        plain = isinstance(value, torch.Tensor) and value.layout == torch.strided
        structured = not plain or is_structured(value)  # type: ignore[arg-type]
        return cls(structured, some_elements(value))


def repeats(value: object, first: torch.Tensor | None) -> bool:
    """Tell whether a tensor has the values of the first sample."""
    some = None if first is None else some_elements(value)
    return some is not None and first is not None and torch.equal(some, first)


def moved(value: torch.Tensor, generator: torch.Generator, *, structured: bool) -> torch.Tensor:
    """Return a tensor with other values in the same range.

    The elements of a structured one get a common factor, which keeps zeros, order and symmetry. A
    mask of zeros and ones keeps its values, and so do rows that sum to one.
    """
    wide = parts(value).to(torch.float64 if value.dtype == torch.float64 else torch.float32)
    if value.numel() == 0 or (structured and is_mask(wide)):
        return value
    shape = () if structured else wide.shape
    noise = torch.rand(shape, generator=generator, device=generator.device)
    if structured:
        wide = wide * (1.0 - noise.to(wide.device) * JITTER / 2)
    else:
        low, high = wide.aminmax()
        wide = (wide * noise.sub_(0.5).mul_(JITTER).add_(1.0)).clamp_(low, high)
    made = from_parts(wide.to(parts(value).dtype), value)
    return like(value).copy_(made)


def is_mask(value: torch.Tensor) -> bool:
    """Tell whether all values are zeros, ones or infinite, or each row sums to one."""
    sums = value.sum(-1, dtype=torch.float64) if value.dim() else value.double()
    if bool(torch.allclose(sums, torch.ones_like(sums), atol=1e-4)):
        return True
    return bool(((value == 0) | (value == 1) | torch.isinf(value)).all())
