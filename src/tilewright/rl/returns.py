"""Returns: the reward of a turn plus those of later turns (Dr. Kernel, arXiv 2602.05885, eq. 2).

An unjudged turn has no reward, so a return that needs it does not exist. A turn that was never
requested, because the context had no room, is absent: it has no return and removes none.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tilewright.errors import ConfigError, RecordError
from tilewright.rl.masked_tensors import Masked, require_shape, zero_filled
from tilewright.rl.presets import Unjudged


def discounted(
    rewards: Masked,
    present: Tensor | None = None,
    *,
    gamma: float = 1.0,
    unjudged: Unjudged = "earlier",
) -> Masked:
    """Return G_t = sum over k >= t of gamma^(k - t) R_k for each turn, float64 (B, T).

    Dr. Kernel, equation 2. A return is known if its turn is present and no reward is missing. An
    unjudged turn removes the returns of `earlier` turns, which need its reward, or of the whole
    `trajectory`. The rewards (B, T), of any floating dtype and without unit, are known where the
    turn was judged. `present` is bool (B, T), the turns that exist; default: all.

    Raises:
        ConfigError: gamma is out of range.
        RecordError: shapes do not fit, or an absent turn has a reward.
    """
    if not 0.0 <= gamma <= 1.0:
        raise ConfigError(f"gamma is {gamma!r}; give 0 to 1")
    if rewards.values.dim() != 2:
        raise RecordError(f"rewards have {rewards.values.dim()} dimensions; expected (B, T)")
    present = torch.ones_like(rewards.known) if present is None else present
    require_shape("present", present, rewards.values.shape)
    if bool((rewards.known & ~present).any()):
        raise RecordError("a turn that is absent has a reward")
    missing = present & ~rewards.known
    lacking = missing.flip(-1).cumsum(-1).flip(-1) > 0
    if unjudged == "trajectory":
        lacking = missing.any(-1, keepdim=True).expand_as(missing)
    known = present & ~lacking
    return Masked(torch.where(known, zero_filled(rewards) @ _discounts(rewards, gamma), 0.0), known)


def of_trajectories(
    rewards: Masked, present: Tensor | None = None, *, gamma: float = 1.0
) -> Masked:
    """Return the return of each whole trajectory, G_0 of equation 2, float64 (B,).

    It is known if the trajectory has a turn and all its turns were judged. Arguments and errors
    are those of `discounted`.
    """
    known = discounted(rewards, present, gamma=gamma, unjudged="trajectory").known.any(-1)
    # Not taken from `discounted`: turn 0 may be absent, and later turns still count.
    values = zero_filled(rewards) @ _discounts(rewards, gamma)[:, :1]
    return Masked(torch.where(known, values.squeeze(-1), 0.0), known)


def _discounts(rewards: Masked, gamma: float) -> Tensor:
    """Return the factor of the reward of turn k (row) in the return of turn t, float64 (T, T)."""
    turns = rewards.values.shape[-1]
    place = torch.arange(turns, dtype=torch.float64, device=rewards.values.device)
    later = place[:, None] - place[None, :]
    return torch.where(later >= 0, torch.pow(gamma, later.clamp(min=0.0)), 0.0)
