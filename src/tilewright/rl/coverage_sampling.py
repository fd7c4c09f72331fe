"""Profiling: pay for the share of the time that is in own kernels, and drop lazy successes.

PR, the profiling ratio of Dr. Kernel (arXiv 2602.05885, equation 7), is what the rest of the
package calls coverage, 0 to 1.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

import torch
from torch import Tensor

from tilewright.errors import ConfigError
from tilewright.rl.masked_tensors import Masked, require_shape, zero_filled
from tilewright.rl.presets import ProfilingMode

__all__ = ["keep", "keep_chance", "rewards", "uniform", "uniforms"]

_LARGEST = math.nextafter(1.0, 0.0)
"""The largest uniform number; 8 bytes of ones would round to 1, which no chance exceeds."""


def rewards(
    correct: Masked,
    speedup: Masked,
    coverage: Masked,
    *,
    weights: tuple[float, float, float] = (1.0, 1.0, 1.0),
    max_speedup: float = 3.0,
) -> Masked:
    """Return R = C (a + b min(s, most) + c PR) with weights a, b, c (equations 1 and 8).

    `tilewright.scoring.rewards` says the same of one judgement; this is for many, and for weights
    of one's own, as c = 0 for an ablation of PR. What is not correct earns 0.

    Args:
        correct: any shape, 1 or 0, decoys being 0; known where the turn was judged.
        speedup: of that shape, reference / candidate, or the lower end of its interval; where none
            is known the term is 0.
        coverage: of that shape; where none is known the term is 0.
        weights: of correctness, speed and coverage.
        max_speedup: from where on more speed is not paid for.

    Returns:
        float64, known where `correct` is.

    Raises:
        RecordError: shapes differ.
    """
    require_shape("speedup", speedup.values, correct.values.shape)
    require_shape("coverage", coverage.values, correct.values.shape)
    own, fast, wide = weights
    speed = zero_filled(speedup).clamp(min=0.0, max=max_speedup)
    paid = own + fast * speed + wide * zero_filled(coverage)
    return Masked(torch.where(zero_filled(correct) > 0.0, paid, 0.0), correct.known)


def keep_chance(
    coverage: Tensor, *, mode: ProfilingMode = "soft", cutoff: float = 0.3, softness: float = 0.1
) -> Tensor:
    """Return the chance that profiling-based rejection sampling (PRS) keeps a correct turn.

    `soft`: clip((PR - cutoff) / softness, 0, 1), equation 9. `hard`: 1 from the cutoff on, else 0
    (appendix D). `off`: 1.

    Args:
        coverage: any shape, 0 to 1.
        mode: which of them.
        cutoff: at or below which nothing is kept softly.
        softness: how far above the cutoff all is kept, above 0.

    Returns:
        float64 of that shape.

    Raises:
        ConfigError: softness is not above 0.
    """
    share = coverage.to(torch.float64)
    if mode == "off":
        return torch.ones_like(share)
    if mode == "hard":
        return (share >= cutoff).to(torch.float64)
    if not softness > 0.0:
        raise ConfigError(f"softness is {softness!r}, wanted above 0; a cut is the mode `hard`")
    return ((share - cutoff) / softness).clamp(0.0, 1.0)


def keep(
    coverage: Masked,
    eligible: Tensor,
    draws: Tensor,
    *,
    mode: ProfilingMode = "soft",
    cutoff: float = 0.3,
    softness: float = 0.1,
) -> Tensor:
    """Return which turns PRS keeps, bool of the shape of the coverage: those with u < p.

    What is not eligible is kept, for there is no lazy failure; and so is a turn whose coverage
    nobody measured, of which nothing can be said.

    Args:
        coverage: any shape.
        eligible: bool of that shape: correct and no decoy.
        draws: of `uniforms`, of that shape.
        mode: as in `keep_chance`.
        cutoff: as in `keep_chance`.
        softness: as in `keep_chance`.

    Raises:
        ConfigError: as in `keep_chance`.
        RecordError: shapes differ.
    """
    require_shape("eligible", eligible, coverage.values.shape)
    require_shape("draws", draws, coverage.values.shape)
    chance = keep_chance(zero_filled(coverage), mode=mode, cutoff=cutoff, softness=softness)
    return (draws < chance) | ~eligible | ~coverage.known


def uniform(seed: int, group: str, rollout: int, turn: int) -> float:
    """Return the draw of one turn, at least 0 and below 1: a function of its name alone.

    The first 8 bytes of BLAKE2b, as a big-endian integer over 2^64. So it depends on no order of
    rows, no engine and no resumption, and lowering a chance never keeps what was dropped.

    Args:
        seed: of the run.
        group: names the rollout batch and the occurrence of the prompt in it.
        rollout: which trajectory of the group.
        turn: which turn of the trajectory.
    """
    name = f"seed={seed}|group={group}|rollout={rollout}|turn={turn}"
    digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
    return min(int.from_bytes(digest, "big") / 2**64, _LARGEST)


def uniforms(seed: int, trajectories: Sequence[tuple[str, int]], turns: int) -> Tensor:
    """Return the draws of all turns, float64 (B, T).

    Args:
        seed: of the run.
        trajectories: group and rollout of each, B of them.
        turns: T.
    """
    table = [
        [uniform(seed, group, rollout, turn) for turn in range(turns)]
        for group, rollout in trajectories
    ]
    return torch.tensor(table, dtype=torch.float64).reshape(len(trajectories), turns)
