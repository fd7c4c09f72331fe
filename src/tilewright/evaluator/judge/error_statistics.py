"""Is the error of an output like that of rounding? Its RMS and its bias, not single elements alone.

Each element of an output may be off by several times the reference's error (`comparison`). Errors
that are all as large as that are no rounding. So this module compares the RMS of the error with
that of the reference. It does so over the whole output, over each row and over each column. A row
is the smallest stretch of trailing dimensions with `MIN_GROUP` elements. The mean of the signed
error, the bias, is compared over the whole output. Each eighth of the elements by size must hold
more than error, so that the small ones cannot be left out (ADR 46).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch

SINGLE_FACTOR = 64.0
"""How much larger than the reference's the RMS error may be in float32 and float64. Naive summation
of 4096 positive terms reaches 21, Winograd F(4x4, 3x3) reaches 9."""
SHORT_FACTOR = 3.0
"""The same in types of at most 16 bits. Attention and softmax that round every step to them reach
2.5. A product whose factors lost one of their eight bits reaches 3.6."""
ROUGH_FACTOR = 5.0
"""The same where the reference's error itself is beyond `SINGLE_SHARE`, as in TF32. The error of
bfloat16 is eight times that of TF32."""
SINGLE_SHARE = 2.0**-13
"""Share of the output's RMS that `SINGLE_FACTOR` may allow; TF32 is off by 2.4 times as much."""
ROW_FACTOR = 2.0
"""How much more a row or a column may be off in 16-bit types, where a mean of the row was rounded.
Attention reaches 5.7 in rows of 64 elements, normalization 4.1."""
ROW_SHARE = 2.0**-10
"""Share of its own RMS by which a row may be off if the whole output may. Blocks of Winograd spread
the error of a large element to neighbours."""
COLUMN_NOISE = 0.25
"""Share of the reference's RMS error that any column may be off by. Imaginary parts that must be
zero are as large as rounding makes them."""
SPREAD = 4.0
"""The factors grow by this over the root of the number of elements: few errors scatter."""
ROUNDING, ONE_ROUNDING = 0.2, 0.3
"""RMS error of one rounding, in units of eps: of many numbers, and in addition of a single one."""
SHORT_BIAS, SINGLE_BIAS = 0.2, 8.0
"""Bias that is allowed, in units of the reference's RMS error. Rounding to 16 bits in steps reaches
0.06, and tanh-GELU in place of GELU 0.41 in float16."""
DEVIATIONS = 6.0
"""Standard errors of the mean that are allowed in addition: 6,000 comparisons exceed none."""
COLUMN_SHARE = 0.25
"""Share of its own RMS by which any column may be off. A row that is ill-conditioned is wrong in
all columns. A column that was left out is off by all of its RMS."""
SPARED = 128
"""One row, and one more of this many, may be off further, up to the tolerance of each element.
Where large scores nearly tie, every implementation may choose another one."""
MAX_CLIP = 16.0
"""The RMS error of the reference counts as at least its largest counted error over this."""
MIN_GROUP = 32
"""Elements from which on a row or a column has an RMS error of its own."""
MIN_STRATUM = 64
"""Fewest elements of an eighth that are compared with its size."""
UNDERFLOW = 4.0
"""Smallest numbers of a type by which any group may be off, as float64 holds smaller ones."""
STRATA = 8
LOST = 0.5
"""Share of its median size by which half of an eighth of the elements, by size, may be off."""
LOST_NOISE = 4.0
"""Roundings of a number of median size that an eighth may be off by in any case."""
STRATA_SAMPLE = 1 << 17
"""Elements that are put in order by size."""
BIAS_SAMPLE = 1 << 14
"""Elements among which different values are counted: errors of equal values are equal."""
BLOCK_ELEMENTS = 1 << 22
"""Elements of which sums are made at once, in float64."""


@dataclass(frozen=True)
class Sums:
    """Sums over groups of elements: of squares of error, reference error, size, and the rest."""

    count: int
    error: torch.Tensor
    """Sum of the squared error of the output; as the following, one number for each group."""
    own: torch.Tensor
    """Sum of the squared error of the reference."""
    size: torch.Tensor
    """Sum of the squared oracle."""
    fourth: torch.Tensor
    """Sum of its fourth powers: tells how many elements make up the sum of squares."""
    allowed: torch.Tensor
    """Sum of the squares of what one rounding of the inputs changes."""
    signed: torch.Tensor
    own_signed: torch.Tensor

    def total(self) -> Sums:
        """Return the sums over all groups as one group."""
        parts = [v.sum().reshape(1) for v in vars(self).values() if isinstance(v, torch.Tensor)]
        return Sums(self.count * self.error.numel(), *parts)


@dataclass(frozen=True)
class Excess:
    """The group that is furthest beyond what is allowed: `ratio` above 1 is too far."""

    ratio: float
    what: str
    index: int = 0

    def __str__(self) -> str:
        """Describe the group and by how much its error is too large."""
        return f"{self.what} is {self.ratio:.3g} times the allowed one"


def excess(
    value: torch.Tensor,
    oracle: torch.Tensor,
    output: torch.Tensor,
    clip: float,
    sensitivity: torch.Tensor | None = None,
    noise: float = 0.0,
) -> Excess:
    """Return where the error of `output` is least like rounding.

    Errors of the reference count up to `clip`, so that a few of them excuse nothing. Where one is
    larger, the error of `output` counts by the same share.
    `sensitivity` is by how much one rounding of the inputs moves each element. `noise` is an error
    that is allowed everywhere.
    """
    eps = torch.finfo(value.dtype).eps
    noise = max(noise, _underflow(value.dtype))
    width = row_width(value)
    rows, columns = _sums(value, oracle, output, clip, sensitivity, width)
    whole = _without_worst(rows).total()
    base = _base(whole, eps).clamp_min_(clip / MAX_CLIP)
    limit = _limit(whole, base, eps, noise)
    found = [_worst(whole, limit, "the RMS error")]
    if rows.error.numel() > 1 and width >= MIN_GROUP:
        found.append(_worst(rows, _group_limit(rows, limit, eps, noise), "the RMS error of a row"))
    if width > 1 and columns.count >= MIN_GROUP:
        most = _group_limit(columns, limit, eps, max(noise, COLUMN_NOISE * float(base)))
        most = torch.maximum(most, COLUMN_SHARE * (columns.size / columns.count).sqrt())
        found.append(_worst(columns, most, "the RMS error of a column"))
    found.append(_bias(rows, whole, float(base), eps, noise, oracle))
    found.append(_lost(value, oracle, output, clip, noise))
    return max(found, key=lambda item: item.ratio)


def _underflow(kind: torch.dtype) -> float:
    """Return the error of numbers that are too small for a type; float32 code may flush them."""
    info = torch.finfo(kind)
    return UNDERFLOW * info.tiny * (info.eps if kind == torch.float16 else 1.0)


def row_width(value: torch.Tensor) -> int:
    """Return the elements of the smallest stretch of trailing dimensions that has an RMS."""
    width = 1
    for size in reversed(value.shape):
        width *= size
        if width >= MIN_GROUP:
            break
    return max(width, 1)


def _sums(
    value: torch.Tensor,
    oracle: torch.Tensor,
    output: torch.Tensor,
    clip: float,
    sensitivity: torch.Tensor | None,
    width: int,
) -> tuple[Sums, Sums]:
    """Return the sums over each row, and over each column."""
    made, columns = [], torch.zeros(7, width, dtype=torch.float64, device=value.device)
    for parts in _blocks([value, oracle, output, sensitivity], width):
        terms = _terms(*parts, clip=clip)
        made.append(torch.stack([term.sum(1) for term in terms]))
        columns += torch.stack([term.sum(0) for term in terms])
    rows = torch.cat(made, 1)
    return Sums(width, *rows), Sums(rows.shape[1], *columns)


def _blocks(tensors: list[torch.Tensor | None], width: int) -> Iterator[list[torch.Tensor | None]]:
    flat = [None if item is None else item.reshape(-1, width) for item in tensors]
    first = flat[0]
    assert first is not None
    step = max(BLOCK_ELEMENTS // width, 1)
    for start in range(0, first.shape[0], step):
        yield [None if item is None else item[start : start + step] for item in flat]


def _terms(
    value: torch.Tensor | None,
    oracle: torch.Tensor | None,
    output: torch.Tensor | None,
    sensitivity: torch.Tensor | None,
    *,
    clip: float,
) -> list[torch.Tensor]:
    assert value is not None
    assert oracle is not None
    assert output is not None
    error, own = output.double() - oracle, value.double() - oracle
    if not float(own.abs().max()) <= clip:
        # A few such elements excuse no others, and the reference itself must pass there.
        share = torch.where(own.abs() > clip, clip / own.abs(), 1.0)
        error, own = error * share, own * share
    size = oracle
    if not math.isfinite(float((error + own).sum())):
        # Whether these agree with the reference is told elsewhere.
        known = torch.isfinite(error) & torch.isfinite(own)
        error, own, size = (torch.where(known, part, 0.0) for part in (error, own, oracle))
    squares = size.square()
    moved = torch.zeros_like(own) if sensitivity is None else sensitivity.double().square()
    return [error.square(), own.square(), squares, squares.square(), moved, error, own]


def _base(sums: Sums, eps: float) -> torch.Tensor:
    """Return the RMS error of an honest implementation: the reference's, or one rounding."""
    size = (sums.size / sums.count).sqrt()
    few = (sums.fourth.sqrt() / sums.size).nan_to_num_(1.0, 1.0, 1.0).clamp_max_(1.0)
    return torch.maximum(
        (sums.own / sums.count).sqrt(), eps * (ROUNDING + ONE_ROUNDING * few) * size
    )


def _limit(sums: Sums, base: torch.Tensor, eps: float, noise: float) -> torch.Tensor:
    """Return the RMS error that is allowed over a whole output, or over a group alone."""
    size = (sums.size / sums.count).sqrt()
    few = (sums.fourth.sqrt() / sums.size).nan_to_num_(1.0, 1.0, 1.0).clamp_max_(1.0)
    if is_short(eps):
        allowed = SHORT_FACTOR * base
    else:
        fine = torch.minimum(SINGLE_FACTOR * base, SINGLE_SHARE * size)
        allowed = torch.maximum(ROUGH_FACTOR * base, fine)
    moved = 4.0 * (sums.allowed / sums.count).sqrt()
    return torch.maximum(allowed * (1 + SPREAD * few), moved).clamp_min_(noise)


def _group_limit(sums: Sums, whole: torch.Tensor, eps: float, noise: float) -> torch.Tensor:
    alone = _limit(sums, _base(sums, eps), eps, noise)
    if is_short(eps):
        alone = alone * ROW_FACTOR
    size = (sums.size / sums.count).sqrt()
    return torch.maximum(alone, torch.minimum(whole, ROW_SHARE * size))


def is_short(eps: float) -> bool:
    """Tell whether a type of this machine epsilon has 16 bits or fewer."""
    return eps > 2.0**-16


def rms_of(value: torch.Tensor) -> float:
    """Return the root of the mean square of a tensor's elements; elements that are none count 0."""
    if value.numel() == 0:
        return 0.0
    norm = float(torch.linalg.vector_norm(value))
    if not math.isfinite(norm):
        norm = float(torch.linalg.vector_norm(value.double().nan_to_num(0.0, 0.0, 0.0)))
    return norm / math.sqrt(value.numel())


def whole_limit(value: torch.Tensor, error_rms: float) -> float:
    """Return the RMS error that is allowed where only that of the reference is known."""
    eps = torch.finfo(value.dtype).eps
    size = rms_of(value.float() if value.element_size() < 4 else value)
    few = 1 / math.sqrt(max(value.numel(), 1))
    base = max(error_rms, eps * (ROUNDING + ONE_ROUNDING * few) * size)
    if is_short(eps):
        return SHORT_FACTOR * base * (1 + SPREAD * few)
    allowed = max(ROUGH_FACTOR * base, min(SINGLE_FACTOR * base, SINGLE_SHARE * size))
    return allowed * (1 + SPREAD * few)


def _worst(sums: Sums, limit: torch.Tensor, what: str) -> Excess:
    error = (sums.error / sums.count).sqrt()
    ratio = torch.where(error > 0, error / limit.clamp_min(1e-300), 0.0)
    index = int(ratio.topk(1 + _spared(ratio.numel())).indices[-1])
    return Excess(float(ratio[index]), what, index)


def _spared(groups: int) -> int:
    return 1 + groups // SPARED if groups >= MIN_GROUP else 0


def _without_worst(rows: Sums) -> Sums:
    """Leave out the few rows whose error is largest."""
    kept = rows.error.numel() - _spared(rows.error.numel())
    places = rows.error.topk(kept, largest=False).indices
    tensors = [value[places] for value in vars(rows).values() if isinstance(value, torch.Tensor)]
    return Sums(rows.count, *tensors)


def _bias(
    rows: Sums, whole: Sums, base: float, eps: float, noise: float, oracle: torch.Tensor
) -> Excess:
    """Compare the mean signed error with that of the reference and with its scatter."""
    count, what = whole.count, "the mean signed error"
    signed = rows.signed
    if count < MIN_GROUP * MIN_GROUP or signed.numel() < MIN_GROUP:
        return Excess(0.0, what)
    mean, own = float(whole.signed) / count, float(whole.own_signed) / count
    means = signed / rows.count
    scatter = DEVIATIONS * float(means.std()) / math.sqrt(means.numel())
    factor = SHORT_BIAS if is_short(eps) else SINGLE_BIAS
    allowed = factor * base + 2 * abs(own) + scatter + noise
    if abs(mean) <= allowed:
        return Excess(abs(mean) / max(allowed, 1e-300), what)
    sample = oracle.reshape(-1)[:: max(count // BIAS_SAMPLE, 1)]
    rms = math.sqrt(float(whole.error) / count)
    allowed += DEVIATIONS * rms / math.sqrt(int(torch.unique(sample).numel()))
    return Excess(abs(mean) / allowed, what)


def _lost(
    value: torch.Tensor,
    oracle: torch.Tensor,
    output: torch.Tensor,
    clip: float,
    noise: float,
) -> Excess:
    """Compare each eighth of the elements, by size, with its own size."""
    what, eps = (
        "the median error of an eighth of the elements, by size,",
        torch.finfo(value.dtype).eps,
    )
    count = value.numel()
    step = max(count // STRATA_SAMPLE, 1)
    if count // step < STRATA * MIN_STRATUM:
        return Excess(0.0, what)
    here, middle, there = (item.reshape(-1)[::step] for item in (value, oracle, output))
    error, own, size, *_ = _terms(here, middle, there, None, clip=clip)
    rows = here.numel() // STRATA
    order = size.argsort()[: rows * STRATA]
    wrong, reference, held = (
        item[order].reshape(STRATA, rows).sqrt() for item in (error, own, size)
    )
    wrong, held = wrong.median(1).values, held.median(1).values
    reference = reference.square().mean(1).sqrt()
    factor = SHORT_FACTOR if is_short(eps) else SINGLE_FACTOR
    allowed = torch.maximum(factor * reference, LOST * held)
    allowed = allowed.clamp_min_(max(float(LOST_NOISE * eps * held[STRATA // 2]), noise))
    ratio = torch.where(wrong > 0, wrong / allowed.clamp_min(1e-300), 0.0)
    index = int(ratio.argmax())
    return Excess(float(ratio[index]), what, index)
