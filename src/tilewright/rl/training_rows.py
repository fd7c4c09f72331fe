"""From a rollout batch to what an engine trains on: one row for each turn.

Who is compared with whom is a number in each row, never its position; rows may be sorted and cut
into pieces as suits the machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tilewright.errors import RecordError
from tilewright.records.events import EvalSummary
from tilewright.rl.coverage_sampling import uniforms
from tilewright.rl.estimator import Turns
from tilewright.rl.masked_tensors import masked
from tilewright.rl.presets import Preset, RewardSection
from tilewright.rl.rollouts import RolloutBatch, is_unjudged
from tilewright.rl.tokens import Sample

__all__ = ["Row", "pieces", "reward_of", "rows_of", "table", "turns_of"]


@dataclass(frozen=True, slots=True)
class Row:
    """One turn: the tokens that the sampler saw and wrote."""

    trajectory: int
    turn: int
    sample: Sample

    @property
    def length(self) -> int:
        """Tokens of prompt and reply."""
        return len(self.sample.prompt) + len(self.sample.reply)


def reward_of(said: EvalSummary, section: RewardSection) -> float | None:
    """Return C (a + b min(s, most) + c PR); `None` where nothing was judged.

    Dr. Kernel, arXiv 2602.05885, equations 1 and 8, with the weights of a preset.
    """
    if said.verdict == "unjudged":
        return None
    if said.verdict != "correct":
        return 0.0
    found = said.speedup if section.speedup_estimate == "estimate" else said.low
    speed = min(max(found or 0.0, 0.0), section.max_speedup)
    return section.correct + section.speed * speed + section.coverage * (said.coverage or 0.0)


def turns_of(played: RolloutBatch, preset: Preset, seed: int) -> Turns:
    """Return what the estimator wants to know of a batch, (B, T)."""
    groups = {name: n for n, name in enumerate(dict.fromkeys(t.group for t in played.trajectories))}
    said = [
        [turn.judgements[0] if turn is not None and not is_unjudged(turn) else None for turn in row]
        for row in played.turns
    ]
    count = len(said[0])
    return Turns(
        prompts=torch.tensor([groups[item.group] for item in played.trajectories]),
        present=torch.tensor([[turn is not None for turn in row] for row in played.turns]),
        rewards=masked(
            [[reward_of(item, preset.reward) if item else None for item in row] for row in said]
        ),
        eligible=torch.tensor([[bool(i and i.verdict == "correct") for i in row] for row in said]),
        coverage=masked([[item.coverage if item else None for item in row] for row in said]),
        draws=uniforms(seed, [(t.group, t.rollout) for t in played.trajectories], count),
    )


def rows_of(played: RolloutBatch) -> list[Row]:
    """Return the rows of a batch, those of turns without room left out.

    Raises:
        RecordError: a turn was told of which nothing was sampled.
    """
    found = []
    for number, (turns, samples) in enumerate(zip(played.turns, played.samples, strict=True)):
        for place, (turn, sample) in enumerate(zip(turns, samples, strict=True)):
            if turn is None:
                continue
            if sample is None or not sample.reply:
                raise RecordError(f"{turn.ask.id}: its tokens are not among what was sampled")
            found.append(Row(number, place, sample))
    return found


def table(rows: Sequence[Row], values: Sequence[Tensor], shape: tuple[int, int]) -> Tensor:
    """Return values of rows in their places, (B, T, L), 0 where there is none.

    Args:
        rows: R of them.
        values: R tensors of one dimension, as long as the replies.
        shape: B and T.
    """
    longest = max(len(row.sample.reply) for row in rows)
    found = torch.zeros(*shape, longest, dtype=values[0].dtype)
    for row, value in zip(rows, values, strict=True):
        found[row.trajectory, row.turn, : len(value)] = value
    return found


def pieces(lengths: Sequence[int], most: int) -> list[list[int]]:
    """Cut rows into at most so many pieces, so that the largest has as few tokens as can be.

    A piece is padded to its longest row, so rows of like lengths go together.

    Args:
        lengths: tokens of each row.
        most: pieces, 1 or more.

    Returns:
        The numbers of the rows of each piece; each row is in one, none is empty.
    """
    order = sorted(range(len(lengths)), key=lambda n: (-lengths[n], n))

    def cut(tokens: int) -> list[list[int]]:
        found: list[list[int]] = []
        for row in order:
            width = lengths[found[-1][0]] if found else 0
            if found and (len(found[-1]) + 1) * width <= tokens:
                found[-1].append(row)
            else:
                found.append([row])
        return found

    low, high = max(lengths, default=1), sum(lengths) + len(lengths) * max(lengths, default=1)
    while low < high:
        middle = (low + high) // 2
        if len(cut(middle)) <= most:
            high = middle
        else:
            low = middle + 1
    return cut(low)
