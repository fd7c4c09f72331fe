"""Generalised advantage estimation, for policies with a critic (Schulman et al. 2016)."""

from __future__ import annotations

import torch
from torch import Tensor

from tilewright.errors import ConfigError, RecordError
from tilewright.rl.masked_tensors import require_shape


def generalised_advantages(
    rewards: Tensor, values: Tensor, present: Tensor, *, gamma: float, gae_lambda: float
) -> tuple[Tensor, Tensor]:
    """Return advantages and the returns that a critic learns, each float64 (B, T), 0 if absent.

    A_t = sum over k of (gamma lambda)^k delta_{t+k}, delta_t = r_t + gamma V_{t+1} - V_t (Schulman
    et al. 2016, arXiv 1506.02438, equations 11 to 16). The value after the last present step is
    0: the episode is over. Returns are A_t + V_t.

    `rewards` and `values` are floating (B, T), `present` is bool (B, T); the present steps of an
    episode are its first ones. Values have no gradient here.

    Raises:
        ConfigError: gamma or lambda is not between 0 and 1.
        RecordError: shapes do not fit, a known number is not finite, or an episode has a gap.
    """
    for name, value in (("gamma", gamma), ("gae_lambda", gae_lambda)):
        if not 0.0 <= value <= 1.0:
            raise ConfigError(f"{name} is {value!r}; give 0 to 1")
    require_shape("values", values, rewards.shape)
    require_shape("present", present, rewards.shape)
    if bool((present[:, 1:] & ~present[:, :-1]).any()):
        raise RecordError("an episode has a step after an absent one")
    earned = torch.where(present, rewards.detach(), 0.0).to(torch.float64)
    valued = torch.where(present, values.detach(), 0.0).to(torch.float64)
    if not bool((earned.isfinite() & valued.isfinite()).all()):
        raise RecordError("a reward or a value is not finite")
    # An absent step has the value 0, as the end of an episode has.
    later = torch.cat([valued[:, 1:], torch.zeros_like(valued[:, :1])], dim=1)
    delta = torch.where(present, earned + gamma * later - valued, 0.0)
    advantages = torch.zeros_like(delta)
    running = torch.zeros_like(delta[:, 0])
    for step in reversed(range(delta.shape[1])):
        running = delta[:, step] + gamma * gae_lambda * running
        advantages[:, step] = running
    return advantages, torch.where(present, advantages + valued, 0.0)
