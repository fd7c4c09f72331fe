"""The loss of PPO over choices: the surrogate, the entropy, the KL term and the critic's error."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from tilewright.rl.choices.sentence_policy import entropies
from tilewright.rl.loss import kl_losses, policy_loss, row_weights
from tilewright.rl.masked_tensors import require_shape
from tilewright.rl.presets import Preset


@dataclass(frozen=True, slots=True)
class ChoiceBatch:
    """N decisions, in tensors without gradient."""

    taken: Tensor
    """Place of the selected option, int64 (N,)."""
    before: Tensor
    """Its log-probability before the step, floating (N,)."""
    advantages: Tensor
    """float64 (N,)."""
    returned: Tensor
    """Returns that the critic learns, float64 (N,)."""
    reference: Tensor | None = None
    """Log-probability of the selected option under the initial model, floating (N,)."""


@dataclass(frozen=True, slots=True)
class ChoiceLoss:
    """The parts of a loss, each a float64 scalar, with gradient."""

    policy: Tensor
    """With the entropy and the KL term."""
    critic: Tensor
    entropy: Tensor
    kl: Tensor
    clipped: Tensor
    """Share of decisions whose ratio left the clip, without gradient."""


def choice_loss(log_pi: Tensor, values: Tensor, batch: ChoiceBatch, preset: Preset) -> ChoiceLoss:
    """Return the loss of decisions (Schulman et al. 2017, arXiv 1707.06347, equation 9).

    policy = mean(-min(r A, clip(r) A)) - c_H mean H(pi) + beta mean k3, and critic = c_V mean((V -
    G)^2) / 2. r is the ratio of the selected option's probability to the one before. A
    decision is a row of one token for `policy_loss`, `row_weights` and `kl_losses`.

    `log_pi` is float64 (N, K) from `log_policy`, and `values` is floating (N,) from the critic.
    """
    require_shape("taken", batch.taken, log_pi.shape[:1])
    require_shape("values", values, batch.taken.shape)
    now = log_pi.gather(-1, batch.taken[:, None])
    one = torch.ones_like(now, dtype=torch.bool)
    count = one.sum(-1)
    weights = row_weights(count, count, aggregation="seq-mean-token-mean", scale=1.0)
    section, choices = preset.loss, preset.choices
    surrogate = policy_loss(
        now,
        batch.before[:, None],
        one,
        batch.advantages,
        weights,
        clip_low=section.clip_low,
        clip_high=section.clip_high,
        dual_clip=section.dual_clip,
    )
    entropy = (entropies(log_pi) * weights).sum()
    kl = torch.zeros((), dtype=torch.float64, device=now.device)
    if batch.reference is not None:
        kl = (kl_losses(now, batch.reference[:, None], one).sum(-1) * weights).sum()
    error = (values.to(torch.float64) - batch.returned) ** 2
    ratio = (now[:, 0].detach() - batch.before).exp()
    outside = (ratio < 1.0 - section.clip_low) | (ratio > 1.0 + section.clip_high)
    return ChoiceLoss(
        policy=surrogate - choices.entropy * entropy + section.kl * kl,
        critic=choices.value * 0.5 * (error * weights).sum(),
        entropy=entropy,
        kl=kl,
        clipped=outside.to(torch.float64).mean(),
    )
