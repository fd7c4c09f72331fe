"""Advantages: a return against those of other rollouts of the same prompt.

Equations are of Dr. Kernel (arXiv 2602.05885, section 4.2 and appendix A). Who is compared with
whom is said by a group number in each row, never by its position: rows may come in any order and
from any rank, but all rows of a group must be there. A row whose return is not known is in no
group. All is computed in float64.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from tilewright.errors import ConfigError, RecordError
from tilewright.rl.masked_tensors import Masked, require_shape, zero_filled
from tilewright.rl.presets import Singleton, Spread

__all__ = ["group_mean", "leave_one_out", "reinforce", "turn_groups"]


def turn_groups(prompts: Tensor, turns: int) -> Tensor:
    """Return the group of each turn: its prompt and its place, so that all turns t are compared.

    Args:
        prompts: integers (B,); equal for rollouts of one occurrence of a prompt in one rollout
            batch. A prompt that is drawn twice has two numbers.
        turns: T.

    Returns:
        int64 (B, T).
    """
    _, place = torch.unique(prompts, return_inverse=True)
    groups: Tensor = place[:, None] * turns + torch.arange(turns, device=prompts.device)
    return groups


def leave_one_out(
    returns: Masked, group: Tensor, *, singleton_advantage: Singleton = "return"
) -> Masked:
    """Return A_i = G_i - mean of G_j, j != i, over the group (equation 5; Kool et al. 2019).

    TRLOO over the groups of `turn_groups`; RLOO over the prompts of whole trajectories.

    Args:
        returns: any shape, without unit.
        group: integers of that shape.
        singleton_advantage: of a turn that is alone in its group; the equation has no case for it.

    Returns:
        Of the same shape; known where the return is, but for singletons under `none`. The
        advantages of a group of two or more sum to 0.

    Raises:
        RecordError: the shapes differ, or groups are not integers.
    """
    found = _grouped(returns, group)
    others = (found.total[found.place] - found.offset) / (found.count - 1).clamp(min=1)[found.place]
    return _spread(returns, found, found.offset - others, singleton_advantage)


def group_mean(
    returns: Masked,
    group: Tensor,
    *,
    singleton_advantage: Singleton = "zero",
    divide_by_std: bool = False,
    ddof: Spread = 1,
    epsilon: float = 1e-6,
) -> Masked:
    """Return A_i = G_i - mean of all G_j of the group (GRPO, equation 3), or that over their std.

    With a group of N it is 1 - 1/N of `leave_one_out` (equations 4 and 13).

    Args:
        returns: any shape, without unit.
        group: integers of that shape.
        singleton_advantage: of a turn that is alone in its group; the equation says `zero`.
        divide_by_std: divide by the group's standard deviation + epsilon (Shao et al. 2024). A
            singleton has none and is not divided.
        ddof: 1 divides the sum of squares by N - 1, 0 by N.
        epsilon: keeps the quotient finite where all returns are equal; it is 0 there.

    Returns:
        As `leave_one_out`.

    Raises:
        ConfigError: epsilon is not positive, or ddof neither 0 nor 1.
        RecordError: the shapes differ, or groups are not integers.
    """
    if epsilon <= 0.0 or ddof not in (0, 1):
        raise ConfigError(
            f"epsilon is {epsilon!r}, wanted above 0; ddof is {ddof!r}, wanted 0 or 1"
        )
    found = _grouped(returns, group)
    centred = found.offset - (found.total / found.count)[found.place]
    if divide_by_std:
        squares = torch.zeros_like(found.total).index_add(0, found.place, centred * centred)
        deviation = (squares / (found.count - ddof).clamp(min=1)).sqrt()
        centred = centred / (deviation[found.place] + epsilon)
    return _spread(returns, found, centred, singleton_advantage)


def reinforce(returns: Masked) -> Masked:
    """Return A_i = G_i: no baseline (Williams 1992), in float64."""
    return Masked(zero_filled(returns), returns.known)


@dataclass(frozen=True, slots=True)
class _Grouped:
    """The M known returns, and the K groups that they fall into."""

    place: Tensor
    """Which group each is in, int64 (M,)."""
    offset: Tensor
    """How far each lies above the least of its group, float64 (M,): equal returns give exact
    zeros, whatever their size."""
    total: Tensor
    """Sum of the offsets of each group, float64 (K,)."""
    count: Tensor
    """Size of each group, int64 (K,)."""


def _grouped(returns: Masked, group: Tensor) -> _Grouped:
    require_shape("group", group, returns.values.shape)
    if group.is_floating_point() or group.dtype == torch.bool:
        raise RecordError(f"groups are {group.dtype}, wanted integers")
    values = returns.values[returns.known].to(torch.float64)
    _, place, count = torch.unique(group[returns.known], return_inverse=True, return_counts=True)
    empty = torch.zeros(len(count), dtype=torch.float64, device=values.device)
    least = empty.scatter_reduce(0, place, values, "amin", include_self=False)
    offset = values - least[place]
    return _Grouped(place, offset, empty.index_add(0, place, offset), count)


def _spread(
    returns: Masked, found: _Grouped, advantages: Tensor, singleton_advantage: Singleton
) -> Masked:
    """Put the advantages of the known back into their places."""
    alone = (found.count == 1)[found.place]
    raw = returns.values[returns.known].to(torch.float64)
    lonely = raw if singleton_advantage == "return" else torch.zeros_like(raw)
    values = torch.zeros(returns.values.shape, dtype=torch.float64, device=returns.values.device)
    values[returns.known] = torch.where(alone, lonely, advantages)
    known = returns.known.clone()
    if singleton_advantage == "none":
        known[returns.known] = ~alone
    return Masked(values, known)
