"""Advantages: each return compared with the returns of other rollouts of the same prompt.

Equations are those of Dr. Kernel (arXiv 2602.05885, section 4.2 and appendix A). Each row carries
the number of its group, so rows may come in any order and from any rank. All rows of a group must
be there. A row with an unknown return is in no group. Computation is in float64.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from tilewright.errors import ConfigError, RecordError
from tilewright.rl.masked_tensors import Masked, require_shape, zero_filled
from tilewright.rl.presets import Singleton, Spread


def turn_groups(prompts: Tensor, turns: int) -> Tensor:
    """Return a group number for each pair of prompt and turn index, int64 (B, turns).

    The groups are those of TRLOO (Dr. Kernel, section 4.2). `prompts` are integers (B,), equal for
    the rollouts of one occurrence of a prompt. A prompt that occurs twice has two numbers.
    """
    _, place = torch.unique(prompts, return_inverse=True)
    return place[:, None] * turns + torch.arange(turns, device=prompts.device)  # type: ignore[no-any-return]


def leave_one_out(
    returns: Masked, group: Tensor, *, singleton_advantage: Singleton = "return"
) -> Masked:
    """Return A_i = G_i - mean of G_j over the other members j of the group, float64.

    Dr. Kernel, equation 5; Kool et al. 2019. It is TRLOO over the groups of `turn_groups`, and
    RLOO over prompts with the returns of whole trajectories. The returns have any shape and
    floating dtype, without unit; `group` has integers of that shape. Equation 5 does not define the
    `singleton_advantage`, that of a group of one.

    The result is known where the return is; under `none`, singletons are unknown. The advantages
    of a group of two or more sum to 0.

    Raises:
        RecordError: the shapes differ, or `group` does not hold integers.
    """
    groups = _grouped(returns, group)
    other_count = (groups.count - 1).clamp(min=1)
    others = (groups.total[groups.place] - groups.offset) / other_count[groups.place]
    return _ungrouped(returns, groups, groups.offset - others, singleton_advantage)


def group_mean(
    returns: Masked,
    group: Tensor,
    *,
    singleton_advantage: Singleton = "zero",
    divide_by_std: bool = False,
    ddof: Spread = 1,
    epsilon: float = 1e-6,
) -> Masked:
    """Return A_i = G_i - mean of all G_j of the group (GRPO), float64, as `leave_one_out` does.

    Dr. Kernel, equation 3. In a group of N it is 1 - 1/N times `leave_one_out` (equations 4, 13).
    For a group of one, equation 3 gives `zero`. `divide_by_std` divides by the group's standard
    deviation + epsilon (GRPO in Shao et al. 2024); a group of one is not divided. The variance is
    the sum of squares over N - ddof. Epsilon keeps the quotient finite where all returns are equal.

    Raises:
        ConfigError: epsilon is not positive, or ddof is neither 0 nor 1.
        RecordError: as in `leave_one_out`.
    """
    if epsilon <= 0.0 or ddof not in (0, 1):
        raise ConfigError(f"epsilon is {epsilon!r}, give above 0; ddof is {ddof!r}, give 0 or 1")
    groups = _grouped(returns, group)
    centred = groups.offset - (groups.total / groups.count)[groups.place]
    if divide_by_std:
        squares = torch.zeros_like(groups.total).index_add(0, groups.place, centred * centred)
        deviation = (squares / (groups.count - ddof).clamp(min=1)).sqrt()
        centred = centred / (deviation[groups.place] + epsilon)
    return _ungrouped(returns, groups, centred, singleton_advantage)


def reinforce(returns: Masked) -> Masked:
    """Return A_i = G_i without a baseline (Williams 1992), any shape, float64."""
    return Masked(zero_filled(returns), returns.known)


@dataclass(frozen=True)
class _Groups:
    """Groups and offsets of the known returns (M,); sums of offsets and sizes of groups (K,)."""

    place: Tensor
    offset: Tensor
    total: Tensor
    count: Tensor


def _grouped(returns: Masked, group: Tensor) -> _Groups:
    require_shape("group", group, returns.values.shape)
    if group.is_floating_point() or group.dtype == torch.bool:
        raise RecordError(f"groups are {group.dtype}; give integers")
    values = returns.values[returns.known].to(torch.float64)
    _, place, count = torch.unique(group[returns.known], return_inverse=True, return_counts=True)
    empty = torch.zeros(len(count), dtype=torch.float64, device=values.device)
    # Offsets from the lowest return of a group: equal returns give exact zeros.
    lowest = empty.scatter_reduce(0, place, values, "amin", include_self=False)
    offset = values - lowest[place]
    return _Groups(place, offset, empty.index_add(0, place, offset), count)


def _ungrouped(
    returns: Masked, groups: _Groups, advantages: Tensor, singleton_advantage: Singleton
) -> Masked:
    """Return the advantages (M,) of the known returns in the shape of the returns."""
    alone = (groups.count == 1)[groups.place]
    values = zero_filled(returns)
    singletons = values[returns.known] if singleton_advantage == "return" else 0.0
    values[returns.known] = torch.where(alone, singletons, advantages)
    known = returns.known.clone()
    if singleton_advantage == "none":
        known[returns.known] = ~alone
    return Masked(values, known)
