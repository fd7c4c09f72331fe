"""Profiling-based rejection sampling (PRS) of correct turns.

Dr. Kernel (arXiv 2602.05885, equation 7) calls it the profiling ratio PR; the rest of the package
calls it coverage. It is the share of the device time in the candidate's own kernels, 0 to 1.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from tilewright.errors import ConfigError
from tilewright.rl.masked_tensors import Masked, require_shape, zero_filled
from tilewright.rl.presets import ProfilingMode


def keep_chance(
    coverage: Tensor, *, mode: ProfilingMode = "soft", cutoff: float = 0.3, softness: float = 0.1
) -> Tensor:
    """Return the probability that PRS keeps a correct turn, float64 in the shape of `coverage`.

    `soft` is clip((PR - cutoff) / softness, 0, 1) (Dr. Kernel, equation 9), so the cutoff is the
    highest coverage that is never kept. `hard` is 1 from the cutoff on, else 0 (appendix D). `off`
    is 1. `coverage` is PR, 0 to 1, of any shape and floating dtype.

    Raises:
        ConfigError: softness is not above 0.
    """
    share = coverage.to(torch.float64)
    if mode == "off":
        return torch.ones_like(share)
    if mode == "hard":
        return (share >= cutoff).to(torch.float64)
    if not softness > 0.0:
        raise ConfigError(f"softness is {softness!r}; give above 0, or the mode `hard`")
    return ((share - cutoff) / softness).clamp(0.0, 1.0)


def keep(coverage: Masked, eligible: Tensor, uniforms: Tensor, **settings: Any) -> Tensor:  # noqa: ANN401 - those of `keep_chance`
    """Return the turns that PRS keeps, bool: those with u < p, p from `keep_chance`.

    Dr. Kernel, equation 9. PRS also keeps every turn that is not eligible or has no coverage. The
    tensors have one shape: `coverage` of any floating dtype, `eligible` (the correct turns) bool,
    and `uniforms` (u) float64. Settings and errors are those of `keep_chance`.
    """
    require_shape("eligible", eligible, coverage.values.shape)
    require_shape("uniforms", uniforms, coverage.values.shape)
    chance = keep_chance(zero_filled(coverage), **settings)
    return (uniforms < chance) | ~eligible | ~coverage.known


def uniform(seed: int, group: str, rollout: int, turn: int) -> float:
    """Return the uniform number u of one turn, at least 0 and below 1.

    It is the first 8 bytes of BLAKE2b of the arguments, big-endian, over 2^64. So u depends on no
    order of rows, engine or resumption, and a lower probability keeps a subset of the turns. The
    group names the rollout batch and the occurrence of the prompt in it.
    """
    name = f"seed={seed}|group={group}|rollout={rollout}|turn={turn}"
    digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
    # 8 bytes of ones would round to 1, which no chance exceeds.
    return min(int.from_bytes(digest, "big") / 2**64, math.nextafter(1.0, 0.0))


def uniforms(seed: int, trajectories: Sequence[tuple[str, int]], turns: int) -> Tensor:
    """Return `uniform` of all turns of B trajectories (group and rollout each), float64 (B, T)."""
    table = [uniform(seed, *item, turn) for item in trajectories for turn in range(turns)]
    return torch.tensor(table, dtype=torch.float64).reshape(len(trajectories), turns)
