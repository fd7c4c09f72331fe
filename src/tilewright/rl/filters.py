"""Two filters that only the released code of Dr. Kernel has; they are off by default.

Both decide by the reward, so the estimator is no longer that of the paper (arXiv 2602.05885). The
released code samples new prompts for dropped ones; tilewright does not.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tilewright.errors import ConfigError
from tilewright.rl.masked_tensors import Masked, require_shape, zero_filled


def last_rewards(rewards: Masked, present: Tensor) -> Masked:
    """Return the reward of the last present turn of each trajectory, float64 (B,).

    `rewards` is (B, T), of any floating dtype, and known where judged; `present` is bool (B, T).
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
    """Return the trajectories whose prompt passes the zero-variance filter, bool (B,).

    The filter drops a prompt if the standard deviation of its last rewards is below `least_std`.
    It also drops one with fewer than `least_judged` judged: n // 2 + 1 of n in the released code.
    The deviation divides by N - 1; a single reward has none. `last` (B,) comes from `last_rewards`,
    and `prompts` (B,) are integers, equal for the rollouts of one occurrence of a prompt. The rules
    are those of `unified_filter.py` of KernelGYM at 3a84417.

    Raises:
        ConfigError: `least_std` is negative.
        RecordError: shapes differ.
    """
    if least_std < 0.0:
        raise ConfigError(f"least_std is {least_std!r}; give 0 or more")
    require_shape("prompts", prompts, last.values.shape)
    names, place = torch.unique(prompts, return_inverse=True)
    zeros = torch.zeros(len(names), dtype=torch.float64, device=prompts.device)
    count = zeros.index_add(0, place, last.known.to(torch.float64))
    mean = zeros.index_add(0, place, zero_filled(last)) / count.clamp(min=1.0)
    centred = torch.where(last.known, zero_filled(last) - mean[place], 0.0)
    squares = zeros.index_add(0, place, centred * centred)
    deviation = (squares / (count - 1.0).clamp(min=1.0)).sqrt()
    dropped = ((count > 1.0) & (deviation < least_std)) | (count < least_judged)
    return ~dropped[place]


def no_regress(rewards: Masked) -> Tensor:
    """Return the turns that are no regression, bool (B, T).

    A regression is a turn with a reward of 0 or less after an earlier turn with a reward above 0.
    An unjudged turn is neither. `rewards` is (B, T), of any floating dtype, and known where judged.
    It follows `vllm_async_engine_multi_iter.py` of KernelGYM at 3a84417.
    """
    paid = rewards.known & (zero_filled(rewards) > 0.0)
    earlier = paid.cumsum(-1) - paid.to(torch.int64) > 0
    return ~(rewards.known & ~paid & earlier)
