"""Returns: what a turn earned and what came after it (Dr. Kernel, arXiv 2602.05885, equation 2).

A turn that was not judged has no reward, and a return that would need it does not exist. A turn
that was never asked (no room was left for it) is absent: it has no return and takes none away.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tilewright.errors import ConfigError, RecordError
from tilewright.rl.masked_tensors import Masked, require_shape, zero_filled
from tilewright.rl.presets import Unjudged

__all__ = ["discounted", "of_trajectories"]


def discounted(
    rewards: Masked,
    present: Tensor | None = None,
    *,
    gamma: float = 1.0,
    unjudged: Unjudged = "earlier",
) -> Masked:
    """Return G of each turn, the sum over k >= t of gamma^(k - t) R_k (equation 2), in float64.

    Args:
        rewards: shape (B, T), without unit; known where the turn was judged.
        present: bool (B, T), whether there is such a turn; all, if it is left out.
        gamma: discount of one turn, 0 to 1.
        unjudged: whether a turn without a reward also takes away the returns of later turns, which
            do not need it.

    Returns:
        Shape (B, T); known where the turn is present and all rewards that it needs are known.

    Raises:
        ConfigError: gamma is out of range.
        RecordError: shapes do not fit, or an absent turn has a reward.
    """
    if not 0.0 <= gamma <= 1.0:
        raise ConfigError(f"gamma is {gamma!r}, wanted between 0 and 1")
    there = _presence(rewards, present)
    turns = rewards.values.shape[-1]
    missing = there & ~rewards.known
    ahead = missing.flip(-1).cumsum(-1).flip(-1) > 0
    if unjudged == "trajectory":
        ahead = missing.any(-1, keepdim=True).expand_as(missing)
    values = zero_filled(rewards) @ _discounts(turns, gamma, rewards.values.device)
    known = there & ~ahead
    return Masked(torch.where(known, values, 0.0), known)


def of_trajectories(
    rewards: Masked, present: Tensor | None = None, *, gamma: float = 1.0
) -> Masked:
    """Return the return of each whole trajectory, which is that of its turn 0, in float64.

    Args and errors are those of `discounted`.

    Returns:
        Shape (B,); known where all present turns were judged and there is at least one.
    """
    whole = discounted(rewards, present, gamma=gamma, unjudged="trajectory")
    known = whole.known.any(-1)
    # Turn 0 may itself be absent, and then has no return; the sum from it on is meant all the same.
    turns = rewards.values.shape[-1]
    values = zero_filled(rewards) @ _discounts(turns, gamma, rewards.values.device)[:, :1]
    return Masked(torch.where(known, values.squeeze(-1), 0.0), known)


def _presence(rewards: Masked, present: Tensor | None) -> Tensor:
    if rewards.values.dim() != 2:
        raise RecordError(f"rewards have {rewards.values.dim()} dimensions, wanted (B, T)")
    if present is None:
        return torch.ones_like(rewards.known)
    require_shape("present", present, rewards.values.shape)
    if bool((rewards.known & ~present).any()):
        raise RecordError("a turn that is absent has a reward")
    return present


def _discounts(turns: int, gamma: float, device: torch.device) -> Tensor:
    """Return (T, T): what the reward of turn k, by row, adds to the return of turn t."""
    place = torch.arange(turns, dtype=torch.float64, device=device)
    apart = place[:, None] - place[None, :]
    return torch.where(apart >= 0, torch.pow(gamma, apart.clamp(min=0.0)), 0.0)
