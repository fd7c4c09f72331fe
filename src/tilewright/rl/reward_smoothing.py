"""Rewards relative to earlier rewards of the same problem.

Source: CUDA-L1 (arXiv 2507.14111), section on contrastive RL. It calls this reward smoothing; the
length of the window is our decision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from tilewright.rl.masked_tensors import Masked

FEWEST = 2
"""Rewards below which a standard deviation says nothing."""


def smoothed(
    rewards: Masked,
    problems: Sequence[str],
    earlier: Mapping[str, Sequence[float]],
    *,
    window: int,
    clip: float,
) -> Masked:
    """Return `clip((r - mu) / sigma, -clip, clip)`, float64 (B, T), known where `rewards` are.

    mu and sigma (population) are those of the last `window` rewards of the row's problem in
    `earlier`, the oldest first. With fewer than two, those of the batch take their place. Where
    sigma is 0 the smoothed reward is 0. `problems` has the problem of each of the B rows.
    """
    found = torch.zeros_like(rewards.values, dtype=torch.float64)
    for problem in dict.fromkeys(problems):
        rows = torch.tensor([name == problem for name in problems])[:, None] & rewards.known
        values = rewards.values[rows].double()
        known = torch.tensor(list(earlier.get(problem, ()))[-window:], dtype=torch.float64)
        before = known if len(known) >= FEWEST else values
        if len(before) >= FEWEST and (sigma := float(before.std(correction=0))) > 0:
            found[rows] = ((values - before.mean()) / sigma).clamp(-clip, clip)
    return Masked(found, rewards.known)
