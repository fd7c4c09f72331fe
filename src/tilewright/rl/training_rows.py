"""From a rollout batch to the rows that an engine trains on: one row for each turn."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tilewright.errors import RecordError
from tilewright.loop.candidate_text import code_of
from tilewright.records.events import Turn
from tilewright.rl.coverage_sampling import uniforms
from tilewright.rl.estimator import TurnVerdicts
from tilewright.rl.masked_tensors import Masked, masked, zero_filled
from tilewright.rl.presets import Preset, TurnRewardSection
from tilewright.rl.reward_smoothing import smoothed
from tilewright.rl.rewards.turn_reward import JudgedTurn, find_reward
from tilewright.rl.rollouts import RolloutBatch, verdict_of
from tilewright.rl.tokens import TokenSample
from tilewright.scoring.rewards import without_checks

Verdicts = Sequence[Sequence[JudgedTurn | None]]
"""(B, T), `None` for an absent or unjudged turn."""


@dataclass(frozen=True, slots=True)
class TrainingRow:
    """One turn: the tokens that the sampler read and wrote."""

    trajectory: int
    turn: int
    sample: TokenSample


@dataclass(frozen=True, slots=True)
class Earlier:
    """The rewards before a batch, for smoothing."""

    problems: Sequence[str]
    """Problem of each trajectory, (B,)."""
    rewards: Mapping[str, Sequence[float]]
    """By problem, the oldest first."""


def rewards_of(verdicts: Verdicts, section: TurnRewardSection) -> Masked:
    """Return the rewards of judged turns, float64 (B, T), known where judged.

    The reward is the one that `section.function` names.
    """
    found = find_reward(section.function)
    return _column(verdicts, lambda item: found.reward(item, section))


def _column(verdicts: Verdicts, read: Callable[[JudgedTurn], float | None]) -> Masked:
    return masked([[read(item) if item else None for item in row] for row in verdicts])


def turns_from(
    trajectories: Sequence[tuple[str, int]],
    present: Sequence[Sequence[bool]],
    verdicts: Verdicts,
    preset: Preset,
    seed: int,
    earlier: Earlier | None = None,
) -> TurnVerdicts:
    """Return the input of the estimator, from group and rollout of each trajectory, and turns.

    `earlier` has what smoothing needs, if the preset smooths rewards.
    """
    rewards = rewards_of(verdicts, preset.reward)
    if preset.smoothing.window:
        if earlier is None:
            raise RecordError("smoothed rewards need the earlier rewards of each problem")
        rewards = smoothed(
            rewards,
            earlier.problems,
            earlier.rewards,
            window=preset.smoothing.window,
            clip=preset.smoothing.clip,
        )
    groups = {name: n for n, name in enumerate(dict.fromkeys(group for group, _ in trajectories))}
    return TurnVerdicts(
        prompts=torch.tensor([groups[group] for group, _ in trajectories]),
        present=torch.tensor(present),
        rewards=rewards,
        eligible=zero_filled(_column(verdicts, _is_correct)) > 0.0,
        coverage=_column(verdicts, lambda item: item.verdict.coverage),
        uniforms=uniforms(seed, trajectories, len(verdicts[0])),
    )


def _is_correct(turn: JudgedTurn) -> float:
    return float(turn.verdict.verdict == "correct")


def paid_verdicts(played: RolloutBatch, *, checks: bool) -> Verdicts:
    """Return the verdicts that rewards follow; without `checks`, a finding rejects nothing."""

    def paid(turn: Turn | None) -> JudgedTurn | None:
        return paid_verdict(turn, played.parent_of(turn), checks=checks) if turn else None

    return [[paid(turn) for turn in row] for row in played.turns]


def paid_verdict(turn: Turn, parent: Turn | None, *, checks: bool) -> JudgedTurn | None:
    """Return a turn as its reward reads it; `None` if it is unjudged."""
    verdict, before = verdict_of(turn), verdict_of(parent)
    if verdict is None:
        return None
    if not checks:
        verdict, before = without_checks(verdict), without_checks(before) if before else None
    return JudgedTurn(verdict, code_of(turn), before, parent is not None)


def turns_of(
    played: RolloutBatch, preset: Preset, seed: int, *, checks: bool = True
) -> TurnVerdicts:
    """Return the input of the estimator for a batch, (B, T)."""
    return turns_from(
        [(item.group, item.rollout) for item in played.trajectories],
        [[turn is not None for turn in row] for row in played.turns],
        paid_verdicts(played, checks=checks),
        preset,
        seed,
        Earlier([item.problem for item in played.trajectories], played.earlier),
    )


def rows_of(played: RolloutBatch) -> list[TrainingRow]:
    """Return the rows of a batch, one for each present turn."""
    found = []
    for number, (turns, samples) in enumerate(zip(played.turns, played.samples, strict=True)):
        for place, (turn, sample) in enumerate(zip(turns, samples, strict=True)):
            if sample is not None and sample.reply:
                found.append(TrainingRow(number, place, sample))
            elif turn is not None:
                raise RecordError(f"{turn.ask.id}: its tokens are not among the samples")
    return found


def table(rows: Sequence[TrainingRow], values: Sequence[Tensor], shape: tuple[int, int]) -> Tensor:
    """Return the values of rows, as long as their replies, in their places, (B, T, L); else 0."""
    longest = max(len(row.sample.reply) for row in rows)
    found = torch.zeros(*shape, longest, dtype=values[0].dtype)
    for row, value in zip(rows, values, strict=True):
        found[row.trajectory, row.turn, : len(value)] = value
    return found


def pieces(lengths: Sequence[int], most: int) -> list[list[int]]:
    """Return at most `most` pieces of row numbers whose largest piece has the fewest tokens.

    A piece is padded to its longest row, so rows of similar length go together. Each row is in one
    piece, and no piece is empty. `lengths` are the tokens of each row.
    """
    order = sorted(range(len(lengths)), key=lambda n: (-lengths[n], n))

    def cut(tokens: int) -> list[list[int]]:
        found: list[list[int]] = []
        for row in order:
            if found and (len(found[-1]) + 1) * lengths[found[-1][0]] <= tokens:
                found[-1].append(row)
            else:
                found.append([row])
        return found

    low, high = max(lengths, default=1), sum(lengths) + len(lengths) * max(lengths, default=1)
    fewest = bisect_left(range(low, high), True, key=lambda tokens: len(cut(tokens)) <= most)
    return cut(low + fewest)
