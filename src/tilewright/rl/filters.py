"""Filters of the released code that its paper does not mention: named, and off unless asked for.

Both look at rewards to decide what is learned from, so that the estimator is no longer that of the
paper. Their oversampling is not here: what they drop is not drawn anew.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tilewright.errors import ConfigError
from tilewright.rl.masked_tensors import Masked, require_shape, zero_filled

__all__ = ["dropped_share", "last_rewards", "no_regress", "spread_prompts"]


def last_rewards(rewards: Masked, present: Tensor) -> Masked:
    """Return the reward of each trajectory's last turn that is present, float64 (B,).

    Args:
        rewards: (B, T), known where judged.
        present: bool (B, T).

    Raises:
        RecordError: shapes differ.
    """
    require_shape("present", present, rewards.values.shape)
    place = torch.arange(present.shape[-1], device=present.device)
    last = torch.where(present, place, 0).amax(-1, keepdim=True)
    known = (rewards.known & present).gather(-1, last).squeeze(-1)
    values = zero_filled(rewards).gather(-1, last).squeeze(-1)
    return Masked(torch.where(known, values, 0.0), known)


def spread_prompts(
    last: Masked, prompts: Tensor, *, least_std: float = 1e-3, least_judged: int = 1
) -> Tensor:
    """Return which trajectories are of a prompt whose last rewards differ, bool (B,).

    The zero-variance filter: a prompt is dropped where the standard deviation (over N - 1) of the
    last rewards is below `least_std`, or fewer than `least_judged` of them were judged. A single
    one has no deviation, and is dropped by the second rule alone.

    Args:
        last: of `last_rewards`, (B,).
        prompts: integers (B,), equal for rollouts of one occurrence of a prompt.
        least_std: in units of the reward.
        least_judged: the released code wants n / 2 + 1 of n rollouts.

    Raises:
        ConfigError: `least_std` is negative.
        RecordError: shapes differ.
    """
    if least_std < 0.0:
        raise ConfigError(f"least_std is {least_std!r}, wanted 0 or more")
    require_shape("prompts", prompts, last.values.shape)
    names, place = torch.unique(prompts, return_inverse=True)
    known = last.known.to(torch.float64)
    zeros = torch.zeros(len(names), dtype=torch.float64, device=prompts.device)
    count = zeros.index_add(0, place, known)
    mean = zeros.index_add(0, place, zero_filled(last)) / count.clamp(min=1.0)
    apart = torch.where(last.known, zero_filled(last) - mean[place], 0.0)
    squares = zeros.index_add(0, place, apart * apart)
    deviation = (squares / (count - 1.0).clamp(min=1.0)).sqrt()
    dropped = ((count > 1.0) & (deviation < least_std)) | (count < least_judged)
    return ~dropped[place]


def no_regress(rewards: Masked) -> Tensor:
    """Return which turns are no relapse, bool (B, T).

    The regress filter: a turn with a reward of 0 or less after an earlier turn with more than 0 is
    dropped. A turn that was not judged is no relapse, and none before it counts as a success.

    Args:
        rewards: (B, T), known where judged.
    """
    paid = rewards.known & (zero_filled(rewards) > 0.0)
    # Shifted by one turn: a turn does not come before itself.
    before = paid.cumsum(-1) - paid.to(torch.int64) > 0
    return ~(rewards.known & ~paid & before)


def dropped_share(kept: Tensor, present: Tensor) -> float:
    """Return which share of what is present a filter drops, 0 to 1; 0 where nothing is present.

    Args:
        kept: bool, any shape.
        present: bool of that shape.

    Raises:
        RecordError: shapes differ.
    """
    require_shape("kept", kept, present.shape)
    whole = int(present.sum())
    return int((present & ~kept).sum()) / whole if whole else 0.0
