"""The whole estimator: from judged turns and log-probabilities to the rows of the loss.

The order is that of the released code of Dr. Kernel: filters, returns, rejection, advantages.
Advantages cover all turns that have a return. A turn that MRS or PRS rejects leaves the loss and
stays in the baselines.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from tilewright.errors import RecordError
from tilewright.rl.advantages import group_mean, leave_one_out, reinforce, turn_groups
from tilewright.rl.coverage_sampling import keep
from tilewright.rl.filters import last_rewards, no_regress, spread_prompts
from tilewright.rl.loss import row_weights
from tilewright.rl.masked_tensors import Masked, require_shape, zero_filled
from tilewright.rl.mismatch_sampling import Rejection, reject, require_kept
from tilewright.rl.presets import Preset
from tilewright.rl.returns import discounted, of_trajectories


@dataclass(frozen=True, slots=True)
class TurnVerdicts:
    """The verdicts of one rollout batch of B trajectories of at most T turns, of all ranks."""

    prompts: Tensor
    """Integers (B,): equal for rollouts of one occurrence of a prompt."""
    present: Tensor
    """Turns that exist, bool (B, T)."""
    rewards: Masked
    """(B, T), known where the turn was judged."""
    eligible: Tensor
    """Correct turns, bool (B, T)."""
    coverage: Masked
    """(B, T), 0 to 1, known where it was measured."""
    uniforms: Tensor
    """Uniform numbers of PRS, float64 (B, T)."""


@dataclass(frozen=True, slots=True)
class TurnEstimate:
    """The part of an estimate that follows from verdicts alone, each field (B, T)."""

    returns: Masked
    filtered: Tensor
    """Turns that a filter dropped, bool."""
    profiled: Tensor
    """Turns that PRS keeps, bool."""
    advantages: Masked

    @property
    def learned(self) -> Tensor:
        """Turns in the loss before mismatch rejection, bool."""
        return self.advantages.known & self.profiled


@dataclass(frozen=True, slots=True)
class LossRows:
    """Everything that a trainer needs besides its own log-probabilities; a row is a turn."""

    advantages: Tensor
    """float64 (B, T), 0 where unknown."""
    tokens: Tensor
    """Tokens in the loss, bool (B, T, L)."""
    weights: Tensor
    """Weight of each row, float64 (B, T)."""
    mismatch: Rejection


def estimate_turns(turns: TurnVerdicts, preset: Preset) -> TurnEstimate:
    """Return returns, masks and advantages of turns, float64 and bool (B, T).

    The formulas are those of `returns`, `filters`, `coverage_sampling` and `advantages`.
    """
    shape = turns.rewards.values.shape
    require_shape("present", turns.present, shape)
    require_shape("prompts", turns.prompts, shape[:1])
    rewards, filtered = turns.rewards, torch.zeros_like(turns.present)
    if preset.filters.regress:
        filtered = ~no_regress(rewards)
        # A regression counts as a reward of 0.
        rewards = Masked(torch.where(filtered, 0.0, rewards.values), rewards.known)
    if preset.filters.zero_variance:
        spread = spread_prompts(
            last_rewards(rewards, turns.present),
            turns.prompts,
            least_std=preset.filters.least_std,
            least_judged=preset.sampling.rollouts // 2 + 1,
        )
        filtered = filtered | ~spread[:, None]
    filtered = filtered & turns.present
    returns = discounted(rewards, turns.present, **preset.returns.model_dump())
    returns = Masked(returns.values, returns.known & ~filtered)
    profiling = preset.profiling.model_dump()
    profiled = keep(turns.coverage, turns.eligible, turns.uniforms, **profiling)
    return TurnEstimate(returns, filtered, profiled, _advantages(returns, rewards, turns, preset))


def estimate_rows(
    estimate: TurnEstimate, before: Tensor, sampler: Tensor, generated: Tensor, preset: Preset
) -> LossRows:
    """Return the tokens in the loss and the weight of each row, for the whole batch.

    The formulas are those of `mismatch_sampling` and `row_weights`. `before` are the trainer's
    log-probabilities before the step and `sampler` the sampler's, floating (B, T, L). `generated`
    is bool (B, T, L), false in an absent turn.

    Raises:
        ConfigError: mismatch rejection keeps nothing.
        RecordError: shapes do not fit, or nothing is left to learn from.
    """
    require_shape("generated", generated[..., 0], estimate.returns.values.shape)
    compared = compared_tokens(estimate, generated, preset)
    if not bool(compared.any()):
        raise RecordError(
            "no turn has a return that no filter drops: there is nothing to learn from"
        )
    mismatch = reject(before, sampler, compared, **preset.mismatch.model_dump(exclude={"over"}))
    require_kept(mismatch)
    sampling, loss = preset.sampling, preset.loss
    planned = sampling.prompts * sampling.rollouts * sampling.turns
    if loss.aggregation == "token-mean":
        planned *= sampling.reply_tokens
    weights = row_weights(
        generated.sum(-1),
        torch.where(estimate.learned, mismatch.left, 0),
        **loss.model_dump(include={"aggregation", "denominator", "scale"}),
        planned=planned if loss.denominator == "planned" else None,
    )
    tokens = mismatch.tokens & estimate.learned[..., None]
    return LossRows(zero_filled(estimate.advantages), tokens, weights, mismatch)


def compared_tokens(estimate: TurnEstimate, generated: Tensor, preset: Preset) -> Tensor:
    """Return the tokens that mismatch rejection compares, bool (B, T, L).

    Under `over: learnable` a turn without a return, or one that a filter drops, has none of them.
    """
    if preset.mismatch.over == "generated":
        return generated
    return generated & estimate.returns.known[..., None]


def _advantages(returns: Masked, rewards: Masked, turns: TurnVerdicts, preset: Preset) -> Masked:
    chosen, alone = preset.advantage, preset.advantage.alone
    group = turn_groups(turns.prompts, returns.values.shape[-1])
    match chosen.estimator:
        case "trloo":
            return leave_one_out(returns, group, singleton_advantage=alone)
        case "grpo":
            settings = chosen.model_dump(include={"divide_by_std", "ddof", "epsilon"})
            return group_mean(returns, group, singleton_advantage=alone, **settings)
        case "reinforce":
            return reinforce(returns)
        case "rloo":
            whole = of_trajectories(rewards, turns.present, gamma=preset.returns.gamma)
            used = Masked(whole.values, whole.known & returns.known.any(-1))
            each = leave_one_out(used, turns.prompts, singleton_advantage=alone)
            known = returns.known & each.known[:, None]
            return Masked(torch.where(known, each.values[:, None], 0.0), known)
