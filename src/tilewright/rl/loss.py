"""The loss of a step: PPO's clipped surrogate with dual clip, and the weight of each row.

The ratio is r = exp(now - before) of the trainer's log-probabilities, which is 1 on the first pass.
Dr. Kernel (arXiv 2602.05885) defines no loss; this is the one of its released code.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from tilewright.errors import ConfigError, RecordError
from tilewright.rl.masked_tensors import require_shape
from tilewright.rl.presets import Aggregation, Denominator

_MAX_LOG_RATIO = 20.0
"""Largest |log r|. Beyond it, exp overflows at some point and makes the gradient NaN."""


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
    """Return l = -min(r A, clip(r, 1 - clip_low, 1 + clip_high) A) per token, float64 (..., L).

    Schulman et al. 2017, equation 7. With a `dual_clip` c above 1, l is at most -c A where A < 0
    (Ye et al. 2020). l is homogeneous in A: k times the advantage gives k times the loss, k >= 0.

    `now` are natural log-probabilities with gradient, floating (..., L), and `before` the trainer's
    before the step; no gradient reaches it. `tokens` is bool (..., L), the tokens in the loss:
    others are not read, and give 0 and no gradient. `advantages` are A of each row, floating (...).
    It is not read for rows without a token in the loss.

    Raises:
        ConfigError: a clip is out of range.
        RecordError: shapes do not fit.
    """
    if not 0.0 <= clip_low <= 1.0 or clip_high < 0.0:
        raise ConfigError(f"clips are {clip_low!r} and {clip_high!r}; give 0 to 1 and 0 or more")
    if dual_clip is not None and not dual_clip > 1.0:
        raise ConfigError(f"dual_clip is {dual_clip!r}; give above 1, or null")
    require_shape("before", before, now.shape)
    require_shape("tokens", tokens, now.shape)
    require_shape("advantages", advantages, now.shape[:-1])
    # Selected first: a NaN in a masked place would survive a product with 0.
    selected = torch.where(tokens, now, 0.0).to(torch.float64)
    started = torch.where(tokens, before.detach(), 0.0).to(torch.float64)
    gain = torch.where(tokens, advantages.detach()[..., None], 0.0).to(torch.float64)
    ratio = (selected - started).clamp(-_MAX_LOG_RATIO, _MAX_LOG_RATIO).exp()
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
    **clips: Any,  # noqa: ANN401 - those of `token_losses`
) -> Tensor:
    """Return the sum over rows of weight times the row's `token_losses`, float64 scalar.

    The losses of pieces of a batch add up, if pieces hold whole rows and the weights are those of
    the whole batch. `weights` (...) come from `row_weights`; the other arguments and the errors
    are those of `token_losses`.
    """
    require_shape("weights", weights, advantages.shape)
    losses = token_losses(now, before, tokens, advantages, **clips)
    return (losses.sum(-1) * weights.to(torch.float64)).sum()


def kl_losses(now: Tensor, reference: Tensor, tokens: Tensor) -> Tensor:
    """Return k3 = exp(d) - d - 1 per token, d = reference - now, float64 (..., L), 0 or more.

    It estimates the divergence of the model from the reference on tokens of the model.
    Schulman 2020, "Approximating KL divergence", and Shao et al. 2024, equation 4, define it. Its
    gradient with respect to `now` is 1 - exp(d).

    `now` are natural log-probabilities with gradient, floating (..., L), and `reference` those of
    the initial model; no gradient reaches it. `tokens` is bool (..., L): others give 0.

    Raises:
        RecordError: shapes do not fit.
    """
    require_shape("reference", reference, now.shape)
    require_shape("tokens", tokens, now.shape)
    selected = torch.where(tokens, now, 0.0).to(torch.float64)
    initial = torch.where(tokens, reference.detach(), 0.0).to(torch.float64)
    gap = (initial - selected).clamp(-_MAX_LOG_RATIO, _MAX_LOG_RATIO)
    return torch.expm1(gap) - gap


def row_weights(
    generated: Tensor,
    kept: Tensor,
    *,
    aggregation: Aggregation = "seq-mean-token-sum",
    denominator: Denominator = "kept",
    scale: float = 1000.0,
    planned: int | None = None,
) -> Tensor:
    """Return the weight of each row, so that every aggregation is a weighted sum, float64 (...).

    For a row of n tokens, among R rows with M tokens in total, the weight is

    * `seq-mean-token-sum`: 1 / (R scale), as in the released code of Dr. Kernel;
    * `seq-mean-token-mean`: 1 / (R n scale), as in Shao et al. 2024, equation 3;
    * `token-mean`: 1 / (M scale), as in Yu et al. 2025 (DAPO).

    `denominator` sets what R, n and M count: kept tokens, or all generated ones, with their rows.
    Under `planned`, R or M is a fixed number, and n counts the generated tokens. A row without
    kept tokens, and a padding row, has weight 0.

    `generated` are the tokens written in each row, integers (...), 0 for a padding row; `kept` are
    those of them in the loss. The scale is 1000 in the released code. `planned` is the number of
    rows, or of tokens for `token-mean`; it belongs to that denominator only.

    Raises:
        ConfigError: scale is not above 0, or `planned` does not fit the denominator.
        RecordError: shapes differ, more is kept than was generated, or nothing is kept.
    """
    if not 0.0 < scale < math.inf:
        raise ConfigError(f"scale is {scale!r}; give above 0")
    if (denominator == "planned") != (planned is not None) or (planned is not None and planned < 1):
        raise ConfigError(f"planned is {planned!r} with the denominator {denominator!r}")
    require_shape("kept", kept, generated.shape)
    if not bool(((kept >= 0) & (kept <= generated)).all()):
        raise RecordError("a row keeps more tokens than were generated")
    if not bool((kept > 0).any()):
        raise RecordError("no token is kept: there is nothing to learn from")
    counted = (kept if denominator == "kept" else generated).to(torch.float64)
    rows = (counted > 0).sum() if planned is None else torch.tensor(planned, device=kept.device)
    if aggregation == "seq-mean-token-mean":
        whole = rows * counted
    else:
        tokens = aggregation == "token-mean" and planned is None
        whole = (counted.sum() if tokens else rows).expand_as(counted)
    return torch.where(kept > 0, (whole.to(torch.float64) * scale).reciprocal(), 0.0)


def for_engine(advantages: Tensor, weights: Tensor, normaliser: Tensor | float) -> Tensor:
    """Return advantages for an engine whose loss then equals `policy_loss`, float64 (...).

    The engine sums token losses / normaliser over rows. A token's loss is homogeneous in A, so
    A' = A weight normaliser gives our weighted sum. A' is 0 where the weight is 0. `advantages`
    (...) are floating, and `weights` (...) come from `row_weights`. The normaliser, (...) or one
    number, is for a mean over all tokens their number; for TRL's `dr_grpo`, its rows times its
    longest reply.
    """
    require_shape("weights", weights, advantages.shape)
    chosen = torch.where(weights > 0.0, advantages, 0.0).to(torch.float64)
    return chosen * weights.to(torch.float64) * normaliser
