"""The loss of a step: PPO's clipped surrogate with dual clip, and the weight of each row.

Three log-probabilities belong to a token: the sampler's, the trainer's before the step, and the
trainer's now. The ratio here is r = exp(now - before), 1 on a first pass; the sampler's belongs to
`mismatch.py`, and neither ratio multiplies the loss of the other. Dr. Kernel (arXiv 2602.05885)
leaves the loss to its code; the surrogate is Schulman et al. 2017, dual clip Ye et al. 2020.
"""

from __future__ import annotations

import math
from typing import assert_never

import torch
from torch import Tensor

from tilewright.errors import ConfigError, RecordError
from tilewright.rl.masked_tensors import require_shape
from tilewright.rl.presets import Aggregation, Denominator

__all__ = ["for_engine", "policy_loss", "row_weights", "token_losses"]

_MAX_LOG = 20.0
"""Ratios are held within e^-20 to e^20: beyond, exp would overflow into a gradient of NaN."""


def token_losses(
    now: Tensor,
    before: Tensor,
    tokens: Tensor,
    advantages: Tensor,
    *,
    clip_low: float = 0.2,
    clip_high: float = 0.28,
    dual_clip: float | None = 3.0,
) -> Tensor:
    """Return the loss of each token, -min(r A, clip(r, 1 - low, 1 + high) A), in float64.

    With dual clip, where A < 0 it is at most -c A: -max(min(r A, clip(r) A), c A). All of it is
    homogeneous in A: a row whose advantage is k times as large has k times the loss, for k >= 0.

    Args:
        now: log-probabilities with gradient, (..., L), natural logarithm.
        before: the trainer's before the step, (..., L); no gradient reaches it.
        tokens: bool (..., L), those in the loss. Others are not read, give 0 and get no gradient.
        advantages: of each row, (...); those of rows without a token in the loss are not read.
        clip_low: how far the ratio may fall, 0 to 1.
        clip_high: how far it may rise.
        dual_clip: c, above 1; `None` for none.

    Raises:
        ConfigError: a clip is out of range.
        RecordError: shapes do not fit.
    """
    if not 0.0 <= clip_low <= 1.0 or clip_high < 0.0:
        raise ConfigError(f"clips are {clip_low!r} and {clip_high!r}, wanted 0 to 1 and 0 or more")
    if dual_clip is not None and not dual_clip > 1.0:
        raise ConfigError(f"dual_clip is {dual_clip!r}, wanted above 1, or null")
    require_shape("before", before, now.shape)
    require_shape("tokens", tokens, now.shape)
    require_shape("advantages", advantages, now.shape[:-1])
    # Selected before anything is computed: NaN in what is masked would survive a product with 0.
    gained = torch.where(tokens, now, 0.0).to(torch.float64)
    started = torch.where(tokens, before.detach(), 0.0).to(torch.float64)
    gain = torch.where(tokens, advantages.detach()[..., None], 0.0).to(torch.float64)
    ratio = (gained - started).clamp(-_MAX_LOG, _MAX_LOG).exp()
    surrogate = torch.minimum(ratio * gain, ratio.clamp(1.0 - clip_low, 1.0 + clip_high) * gain)
    if dual_clip is not None:
        surrogate = torch.where(gain < 0.0, torch.maximum(surrogate, dual_clip * gain), surrogate)
    return -surrogate


def policy_loss(
    now: Tensor,
    before: Tensor,
    tokens: Tensor,
    advantages: Tensor,
    weights: Tensor,
    *,
    clip_low: float = 0.2,
    clip_high: float = 0.28,
    dual_clip: float | None = 3.0,
) -> Tensor:
    """Return the sum over rows of weight times the sum of the row's token losses, float64 ().

    A batch may be cut into pieces of whole rows whose losses are added, with the weights that
    `row_weights` gave for the whole batch.

    Args:
        now: as in `token_losses`.
        before: as in `token_losses`.
        tokens: as in `token_losses`.
        advantages: as in `token_losses`.
        weights: of `row_weights`, (...).
        clip_low: as in `token_losses`.
        clip_high: as in `token_losses`.
        dual_clip: as in `token_losses`.

    Raises:
        ConfigError: as in `token_losses`.
        RecordError: as in `token_losses`.
    """
    require_shape("weights", weights, advantages.shape)
    losses = token_losses(
        now,
        before,
        tokens,
        advantages,
        clip_low=clip_low,
        clip_high=clip_high,
        dual_clip=dual_clip,
    )
    return (losses.sum(-1) * weights.to(torch.float64)).sum()


def row_weights(
    generated: Tensor,
    kept: Tensor,
    *,
    aggregation: Aggregation = "seq-mean-token-sum",
    denominator: Denominator = "kept",
    scale: float = 1000.0,
    planned: int | None = None,
) -> Tensor:
    """Return the weight of each row, with which every aggregation is one weighted sum.

    The weight of a row of n tokens, over R rows with M tokens together, is

    * `seq-mean-token-sum`: 1 / (R scale);
    * `seq-mean-token-mean`: 1 / (R n scale);
    * `token-mean`: 1 / (M scale).

    `denominator` says what R, n and M count: tokens (and rows with any) that are kept, or all that
    were generated, or `planned` of them (then n counts the generated). A row of which nothing is
    kept has weight 0, and so have rows that only fill up a batch.

    Args:
        generated: tokens that were written in each row, integers (...); 0 for a filling row.
        kept: how many of them are in the loss, integers (...).
        aggregation: one of those above.
        denominator: what is counted.
        scale: divides the loss; 1000 in the released code.
        planned: rows, or tokens for `token-mean`, with the denominator of that name.

    Returns:
        float64 (...).

    Raises:
        ConfigError: scale is not above 0, or `planned` does not fit the denominator.
        RecordError: shapes differ, more is kept than was generated, or nothing is kept.
    """
    if not 0.0 < scale < math.inf:
        raise ConfigError(f"scale is {scale!r}, wanted above 0")
    if (denominator == "planned") != (planned is not None) or (planned is not None and planned < 1):
        raise ConfigError(f"planned is {planned!r} with the denominator {denominator!r}")
    require_shape("kept", kept, generated.shape)
    if not bool(((kept >= 0) & (kept <= generated)).all()):
        raise RecordError("a row keeps more tokens than were generated")
    if not bool((kept > 0).any()):
        raise RecordError("no token is kept: there is nothing to learn from")
    counted = (kept if denominator == "kept" else generated).to(torch.float64)
    rows = (counted > 0).sum() if planned is None else torch.tensor(planned, device=kept.device)
    match aggregation:
        case "seq-mean-token-sum":
            whole = rows.expand_as(counted)
        case "seq-mean-token-mean":
            whole = rows * counted
        case "token-mean":
            whole = (counted.sum() if planned is None else rows).expand_as(counted)
        case _:
            assert_never(aggregation)
    return torch.where(kept > 0, (whole.to(torch.float64) * scale).reciprocal(), 0.0)


def for_engine(advantages: Tensor, weights: Tensor, normaliser: Tensor | float) -> Tensor:
    """Return advantages with which an engine that divides by `normaliser` computes our loss.

    An engine's loss is the sum over rows of (token losses) / normaliser. Since a token's loss is
    homogeneous in A, A' = A weight normaliser makes it the sum of weight times token losses.

    Args:
        advantages: float (...).
        weights: of `row_weights`, (...).
        normaliser: what the engine divides each row by, (...) or one for all: for a mean over all
            tokens their number, for TRL's `dr_grpo` its rows times its longest reply.

    Returns:
        float64 (...), 0 where the weight is 0 whatever the advantage.

    Raises:
        RecordError: shapes differ.
    """
    require_shape("weights", weights, advantages.shape)
    chosen = torch.where(weights > 0.0, advantages, 0.0).to(torch.float64)
    return chosen * weights.to(torch.float64) * normaliser
