"""Mismatch rejection sampling (MRS): drop what the trainer would hardly have sampled.

Sampler and trainer compute the same model with other kernels and other precision, so that their
log-probabilities of one token differ. rho = exp(before - sampler), with `before` the trainer's
before the step. rho decides what is kept and is multiplied into nothing; the ratio of the loss is
another one (`loss.py`). Dr. Kernel, arXiv 2602.05885, equation 6 and section 5.1.

Log-probabilities are natural logarithms, of the distribution that was sampled from.
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

__all__ = ["Ratios", "Rejection", "mean_log_ratios", "ratios", "reject"]

_BLOCK = 1 << 17
"""Tokens that are looked at together: float64 of a whole batch would not fit a cache."""


@dataclass(frozen=True, slots=True)
class Ratios:
    """What log rho of the generated tokens of each turn comes to, (B, T)."""

    summed: Tensor
    """Sum of log rho, or log of the sum of rho, as `mean` says; float64."""
    least: Tensor
    """Least log rho, or 0 if that is less; float64."""
    written: Tensor
    """How many tokens were generated, int64; in a turn with none the others mean nothing."""
    mean: Mean


@dataclass(frozen=True, slots=True)
class Rejection:
    """What mismatch rejection leaves."""

    tokens: Tensor
    """Tokens that are kept, bool (B, T, L)."""
    written: Tensor
    """How many were generated in each turn, int64 (B, T)."""
    left: Tensor
    """How many of them are kept, int64 (B, T)."""
    outside: Tensor
    """Turns that lost tokens because a ratio left its bounds, bool (B, T)."""
    vetoed: Tensor
    """Turns with a token whose ratio is below the veto, bool (B, T)."""


def ratios(
    before: Tensor, sampler: Tensor, generated: Tensor, *, mean: Mean = "geometric"
) -> Ratios:
    """Return what the ratios of each turn come to, computed in float64.

    Args:
        before: the trainer's log-probabilities before the step, (B, T, L); minus infinity is a
            token that it rules out.
        sampler: those that the sampler drew with, (B, T, L).
        generated: bool (B, T, L), which tokens the model wrote; others are not read.
        mean: what is summed: log rho for a `geometric` mean, rho for an `arithmetic` one.

    Raises:
        RecordError: shapes do not fit, no token was generated, or a log-probability is no number.
    """
    require_shape("sampler", sampler, before.shape)
    require_shape("generated", generated, before.shape)
    if before.dim() != 3:
        raise RecordError(f"log-probabilities have {before.dim()} dimensions, wanted (B, T, L)")
    if not bool(generated.any()):
        raise RecordError("no token was generated: there is nothing to compare")
    sums, leasts, counts = [], [], []
    for logs, wrote in _blocks(before, sampler, generated):
        if not bool((logs < math.inf).all()):
            raise RecordError("a log-probability of a generated token is no number, or infinite")
        if mean == "geometric":
            sums.append(logs.sum(-1))
        else:
            sums.append(torch.where(wrote, logs, -math.inf).logsumexp(-1))
        # Where nothing was generated log rho is held at 0.
        leasts.append(logs.amin(-1))
        counts.append(wrote.sum(-1))
    summed, least, written = (
        torch.cat(parts).reshape(before.shape[:2]) for parts in (sums, leasts, counts)
    )
    return Ratios(summed, least, written, mean)


def mean_log_ratios(found: Ratios, *, level: Level) -> Masked:
    """Return log w for each turn, w the mean ratio of what it is judged with (equation 6).

    Args:
        found: of `ratios`, whose `mean` says which: the log of a geometric w is the mean of log
            rho, an arithmetic w is the mean of rho.
        level: `trajectory`: w is over all generated tokens of all turns of the trajectory, and
            equal for its turns, also where one was not judged. Otherwise over those of the turn.

    Returns:
        float64 (B, T); known where the turn has a generated token. Minus infinity is held at the
        least finite number.
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
    """Return which tokens stay: low <= w <= high, both inclusive, and no rho below the veto.

    Bounds are compared on the log scale. The veto looks down only (a token that the trainer finds
    likelier is no danger), rejects the turn it is in and no other turn, and its token counts in
    the mean all the same.

    Args:
        before: as in `ratios`.
        sampler: as in `ratios`.
        generated: as in `ratios`.
        level: what is kept or dropped as one; at `token` each rho must lie within the bounds.
            `off` keeps all that was generated, and applies no veto.
        mean: how rho is averaged, above the level of tokens.
        low: least ratio, above 0.
        high: largest ratio.
        min_ratio: least ratio of a single token; `None` for none.

    Raises:
        ConfigError: the bounds are not 0 < low <= high, `min_ratio` not in 0 to 1, or nothing
            is left: a step without rows would silently do nothing.
        RecordError: as in `ratios`.
    """
    _require_bounds(low, high, min_ratio)
    found = ratios(before, sampler, generated, mean=mean)
    nowhere = torch.zeros_like(generated[..., 0])
    if level == "off":
        return Rejection(generated, found.written, found.written, nowhere, nowhere)
    vetoed = nowhere if min_ratio is None else found.least < math.log(min_ratio)
    bounds = math.log(low), math.log(high)
    if level == "token":
        inside = _within(before, sampler, generated, bounds)
        outside = (generated & ~inside).any(-1)
        tokens = inside & ~vetoed[..., None]
        left = tokens.sum(-1)
    else:
        logs = mean_log_ratios(found, level=level)
        outside = logs.known & ~((logs.values >= bounds[0]) & (logs.values <= bounds[1]))
        dropped = outside | vetoed
        tokens = generated & ~dropped[..., None]
        left = torch.where(dropped, 0, found.written)
    if not bool((left > 0).any()):
        raise ConfigError(
            f"mismatch rejection kept none of {int((found.written > 0).sum())} turns, "
            f"{int(vetoed.sum())} of them by the veto; let sampler and trainer compute in one "
            "precision, or widen the bounds"
        )
    return Rejection(tokens, found.written, left, outside, vetoed)


def _require_bounds(low: float, high: float, min_ratio: float | None) -> None:
    if not 0.0 < low <= high < math.inf or (min_ratio is not None and not 0.0 < min_ratio <= 1.0):
        raise ConfigError(
            f"mismatch: bounds {low} to {high}, min_ratio {min_ratio}: give 0 < low <= high and "
            "0 < min_ratio <= 1"
        )


def _blocks(before: Tensor, sampler: Tensor, generated: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield log rho of some turns in float64, 0 where none was generated, and what was."""
    rows = max(_BLOCK // max(before.shape[-1], 1), 1)
    tables = (table.detach().flatten(0, 1).split(rows) for table in (before, sampler, generated))
    for ours, theirs, wrote in zip(*tables, strict=True):
        logs = ours.to(torch.float64, copy=True).sub_(theirs)
        yield logs.masked_fill_(~wrote, 0.0), wrote


def _within(
    before: Tensor, sampler: Tensor, generated: Tensor, bounds: tuple[float, float]
) -> Tensor:
    """Return the generated tokens whose own log rho lies within the bounds, bool (B, T, L)."""
    parts = [
        wrote & (logs >= bounds[0]) & (logs <= bounds[1])
        for logs, wrote in _blocks(before, sampler, generated)
    ]
    return torch.cat(parts).reshape(generated.shape)
