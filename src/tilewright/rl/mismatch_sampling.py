"""Mismatch rejection sampling (MRS): drop tokens that the trainer would hardly have sampled.

Sampler and trainer compute one model with different kernels and precision, so their natural
log-probabilities of a token differ. rho = exp(before - sampler) decides which tokens are kept and
scales nothing. Dr. Kernel, arXiv 2602.05885, equation 6 and section 5.1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from tilewright.errors import ConfigError, RecordError
from tilewright.rl.masked_tensors import Masked, require_shape
from tilewright.rl.presets import Level, Mean

_CHUNK_TOKENS = 1 << 17
"""Tokens in one chunk; float64 copies of a whole batch would not fit into a cache."""


@dataclass(frozen=True, slots=True)
class Ratios:
    """Statistics of log rho over the generated tokens of each turn, (B, T).

    `summed` is the sum of log rho (geometric `mean`), or the log of the sum of rho (arithmetic).
    `least` is the lowest log rho, at most 0. Without `written` tokens, both have no meaning.
    """

    summed: Tensor
    least: Tensor
    written: Tensor
    mean: Mean


@dataclass(frozen=True, slots=True)
class Rejection:
    """The result of mismatch rejection.

    `tokens` are the kept ones, bool (B, T, L). `written` and `left` are the numbers of generated
    and of kept tokens of each turn, int64 (B, T). `outside` are the turns that lost tokens because
    a ratio is out of bounds, and `vetoed` those with a token below `min_ratio`, bool (B, T).
    """

    tokens: Tensor
    written: Tensor
    left: Tensor
    outside: Tensor
    vetoed: Tensor


def ratios(
    before: Tensor, sampler: Tensor, generated: Tensor, *, mean: Mean = "geometric"
) -> Ratios:
    """Return statistics of rho for each turn, computed in float64 (Dr. Kernel, section 5.1).

    `before` are the trainer's log-probabilities before the step, floating (B, T, L); minus infinity
    means that the trainer rules the token out. `sampler` are the sampler's. `generated` is bool
    (B, T, L), the tokens that the model wrote; others are not read. A `geometric` mean needs the
    sum of log rho, an `arithmetic` one the sum of rho.

    Raises:
        RecordError: shapes do not fit, no token was generated, or a log-probability is no number.
    """
    require_shape("sampler", sampler, before.shape)
    require_shape("generated", generated, before.shape)
    if before.dim() != 3:
        raise RecordError(f"log-probabilities have {before.dim()} dimensions; expected (B, T, L)")
    if not bool(generated.any()):
        raise RecordError("no token was generated: there is nothing to compare")
    parts = []
    for logs, wrote in _chunks(before, sampler, generated):
        if not bool((logs < math.inf).all()):
            raise RecordError("a log-probability of a generated token is no number, or infinite")
        if mean == "geometric":
            summed = logs.sum(-1)
        else:
            summed = torch.where(wrote, logs, -math.inf).logsumexp(-1)
        parts.append((summed, logs.amin(-1), wrote.sum(-1)))
    summed, least, written = (
        torch.cat(part).reshape(before.shape[:2]) for part in zip(*parts, strict=True)
    )
    return Ratios(summed, least, written, mean)


def mean_log_ratios(found: Ratios, *, level: Level) -> Masked:
    """Return log w of each turn, with w the mean of rho (Dr. Kernel, equation 6), float64 (B, T).

    The geometric log w is the mean of log rho; the arithmetic w is the mean of rho. Log w is known
    where the turn has a generated token, and at least the lowest finite number. Under the level
    `trajectory`, w covers the tokens of all turns of the trajectory, judged or not, and is equal
    for its turns. Otherwise w covers the tokens of the turn.
    """
    known = found.written > 0
    count, summed = found.written.to(torch.float64), found.summed
    if level == "trajectory":
        count = count.sum(-1, keepdim=True)
        if found.mean == "geometric":
            summed = summed.sum(-1, keepdim=True)
        else:
            summed = summed.logsumexp(-1, keepdim=True)
    count = count.clamp(min=1.0)
    logs = summed / count if found.mean == "geometric" else summed - count.log()
    finite = logs.clamp(min=torch.finfo(torch.float64).min).expand_as(known)
    return Masked(torch.where(known, finite, 0.0), known)


def reject(
    before: Tensor,
    sampler: Tensor,
    generated: Tensor,
    *,
    level: Level = "trajectory",
    mean: Mean = "geometric",
    low: float = 0.999,
    high: float = 1.001,
    min_ratio: float | None = 1e-4,
) -> Rejection:
    """Return the tokens with low <= w <= high in turns without a rho below `min_ratio`.

    Dr. Kernel, equation 6 and section 5.1. The comparison is on the log scale and inclusive. A low
    rho vetoes its own turn only, and still counts in the mean. A high rho vetoes nothing.

    The tensors are those of `ratios`. `level` is the unit that is kept or dropped. At `token`, w is
    the token's own rho; above it, w is the `mean` of rho. `off` keeps all generated tokens, without
    a veto. A `min_ratio` of `None` is no limit.

    Raises:
        ConfigError: the bounds are not 0 < low <= high, or `min_ratio` is not in (0, 1].
        RecordError: as in `ratios`.
    """
    if not 0.0 < low <= high < math.inf or not (min_ratio is None or 0.0 < min_ratio <= 1.0):
        raise ConfigError(
            f"mismatch: bounds {low} to {high}, min_ratio {min_ratio}: give 0 < low <= high and "
            "0 < min_ratio <= 1"
        )
    found = ratios(before, sampler, generated, mean=mean)
    none = torch.zeros_like(generated[..., 0])
    if level == "off":
        return Rejection(generated, found.written, found.written, none, none)
    vetoed = none if min_ratio is None else found.least < math.log(min_ratio)
    lowest, highest = math.log(low), math.log(high)
    if level == "token":
        parts = [
            wrote & (logs >= lowest) & (logs <= highest)
            for logs, wrote in _chunks(before, sampler, generated)
        ]
        inside = torch.cat(parts).reshape(generated.shape)
        outside = (generated & ~inside).any(-1)
        tokens = inside & ~vetoed[..., None]
    else:
        logs = mean_log_ratios(found, level=level)
        outside = logs.known & ~((logs.values >= lowest) & (logs.values <= highest))
        tokens = generated & ~(outside | vetoed)[..., None]
    return Rejection(tokens, found.written, tokens.sum(-1), outside, vetoed)


def require_kept(found: Rejection) -> None:
    """Refuse a rejection that keeps no token.

    Raises:
        ConfigError: it keeps none; the message names the number of vetoes.
    """
    if not bool((found.left > 0).any()):
        raise ConfigError(
            f"mismatch rejection kept none of {int((found.written > 0).sum())} turns, "
            f"{int(found.vetoed.sum())} of them by the veto; let sampler and trainer compute in "
            "one precision, or widen the bounds"
        )


def _chunks(before: Tensor, sampler: Tensor, generated: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield log rho of some turns in float64, 0 where no token was generated, and `generated`."""
    rows = max(_CHUNK_TOKENS // max(before.shape[-1], 1), 1)
    tables = (table.detach().flatten(0, 1).split(rows) for table in (before, sampler, generated))
    for ours, theirs, wrote in zip(*tables, strict=True):
        logs = ours.to(torch.float64, copy=True).sub_(theirs)
        yield logs.masked_fill_(~wrote, 0.0), wrote
