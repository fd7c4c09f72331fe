"""The whole estimator: from judged turns and log-probabilities to what the loss multiplies.

Its order is that of the released code: filters, returns, rejection, advantages. Advantages are over
all turns that have a return; what MRS or PRS drops leaves the loss and stays in the baselines.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from tilewright.rl.advantages import group_mean, leave_one_out, reinforce, turn_groups
from tilewright.rl.coverage_sampling import keep
from tilewright.rl.filters import last_rewards, no_regress, spread_prompts
from tilewright.rl.loss import row_weights
from tilewright.rl.masked_tensors import Masked, require_shape, zero_filled
from tilewright.rl.mismatch_sampling import Rejection, reject
from tilewright.rl.presets import Preset, singleton_of
from tilewright.rl.returns import discounted, of_trajectories

__all__ = ["Rows", "TurnEstimate", "Turns", "estimate_rows", "estimate_turns"]


@dataclass(frozen=True, slots=True)
class Turns:
    """What was found out about the turns of one rollout batch, of all ranks together."""

    prompts: Tensor
    """Integers (B,): equal for rollouts of one occurrence of a prompt."""
    present: Tensor
    """Whether there is such a turn, bool (B, T)."""
    rewards: Masked
    """(B, T), known where it was judged."""
    eligible: Tensor
    """Correct and no decoy, bool (B, T)."""
    coverage: Masked
    """(B, T), 0 to 1, known where it was measured."""
    draws: Tensor
    """Uniform draws of coverage-based sampling, shape (B, T)."""


@dataclass(frozen=True, slots=True)
class TurnEstimate:
    """What follows for turns from verdicts alone, as can be computed anew from any log."""

    returns: Masked
    """(B, T)."""
    filtered: Tensor
    """Turns that a filter dropped, bool (B, T)."""
    profiled: Tensor
    """Turns that PRS keeps, bool (B, T)."""
    advantages: Masked
    """(B, T)."""


@dataclass(frozen=True, slots=True)
class Rows:
    """What a trainer needs beside its own log-probabilities."""

    advantages: Tensor
    """float64 (B, T), 0 where there is none."""
    tokens: Tensor
    """Those in the loss, bool (B, T, L)."""
    weights: Tensor
    """Weight of each row, float64, shape (B, T)."""
    mismatch: Rejection


def estimate_turns(turns: Turns, preset: Preset) -> TurnEstimate:
    """Return returns, masks and advantages of turns.

    Raises:
        RecordError: shapes do not fit.
    """
    shape = turns.rewards.values.shape
    require_shape("present", turns.present, shape)
    require_shape("prompts", turns.prompts, shape[:1])
    filtered, rewards = _filter(turns, preset)
    chosen = preset.returns
    returns = discounted(rewards, turns.present, gamma=chosen.gamma, unjudged=chosen.unjudged)
    returns = Masked(returns.values, returns.known & ~filtered)
    profiled = keep(
        turns.coverage,
        turns.eligible,
        turns.draws,
        mode=preset.profiling.mode,
        cutoff=preset.profiling.cutoff,
        softness=preset.profiling.softness,
    )
    advantages = _advantages(returns, rewards, turns, preset)
    return TurnEstimate(returns, filtered, profiled, advantages)


def estimate_rows(
    estimate: TurnEstimate, before: Tensor, sampler: Tensor, generated: Tensor, preset: Preset
) -> Rows:
    """Return the tokens in the loss and the weight of each row, for the whole batch.

    Args:
        estimate: of `estimate_turns`.
        before: the trainer's log-probabilities before the step, (B, T, L).
        sampler: the sampler's, (B, T, L).
        generated: bool (B, T, L), none in a turn that is absent.
        preset: as in `estimate_turns`.

    Raises:
        ConfigError: mismatch rejection leaves nothing.
        RecordError: shapes do not fit, or nothing is left to learn from.
    """
    require_shape("generated", generated[..., 0], estimate.returns.values.shape)
    mismatch = reject(before, sampler, generated, **preset.mismatch.model_dump())
    learned = estimate.advantages.known & estimate.profiled
    tokens = mismatch.tokens & learned[..., None]
    sampling, loss = preset.sampling, preset.loss
    planned = sampling.prompts * sampling.rollouts * sampling.turns
    if loss.aggregation == "token-mean":
        planned *= sampling.reply_tokens
    weights = row_weights(
        mismatch.written,
        torch.where(learned, mismatch.left, 0),
        aggregation=loss.aggregation,
        denominator=loss.denominator,
        scale=loss.scale,
        planned=planned if loss.denominator == "planned" else None,
    )
    return Rows(zero_filled(estimate.advantages), tokens, weights, mismatch)


def _filter(turns: Turns, preset: Preset) -> tuple[Tensor, Masked]:
    """Return which turns are dropped, and the rewards that are left: a relapse has none, so 0."""
    dropped = torch.zeros_like(turns.present)
    rewards = turns.rewards
    if preset.filters.regress:
        dropped = ~no_regress(rewards)
        rewards = Masked(torch.where(dropped, 0.0, rewards.values), rewards.known)
    if preset.filters.zero_variance:
        spread = spread_prompts(
            last_rewards(rewards, turns.present),
            turns.prompts,
            least_std=preset.filters.least_std,
            least_judged=preset.sampling.rollouts // 2 + 1,
        )
        dropped = dropped | ~spread[:, None]
    return dropped & turns.present, rewards


def _advantages(returns: Masked, rewards: Masked, turns: Turns, preset: Preset) -> Masked:
    chosen, alone = preset.advantage, singleton_of(preset.advantage)
    group = turn_groups(turns.prompts, returns.values.shape[-1])
    match chosen.estimator:
        case "trloo":
            return leave_one_out(returns, group, singleton_advantage=alone)
        case "grpo":
            return group_mean(
                returns,
                group,
                singleton_advantage=alone,
                divide_by_std=chosen.divide_by_std,
                ddof=chosen.ddof,
                epsilon=chosen.epsilon,
            )
        case "reinforce":
            return reinforce(returns)
        case "rloo":
            whole = of_trajectories(rewards, turns.present, gamma=preset.returns.gamma)
            used = Masked(whole.values, whole.known & returns.known.any(-1))
            each = leave_one_out(used, turns.prompts, singleton_advantage=alone)
            known = returns.known & each.known[:, None]
            return Masked(torch.where(known, each.values[:, None], 0.0), known)
