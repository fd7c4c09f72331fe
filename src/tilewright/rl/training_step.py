"""From a rollout batch and the trainer's log-probabilities to a step, whatever the engine."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tilewright.rl.estimator import estimate_rows, estimate_turns
from tilewright.rl.presets import Preset
from tilewright.rl.rollouts import RolloutBatch
from tilewright.rl.training_metrics import TrainedStep
from tilewright.rl.training_rows import TrainingRow, table, turns_of


@dataclass(frozen=True)
class Estimation:
    """How a run estimates: its preset, the seed of PRS, and whether findings reject an answer."""

    preset: Preset
    seed: int
    checks: bool = True


def trained_step(
    played: RolloutBatch,
    rows: Sequence[TrainingRow],
    before: Sequence[Tensor],
    how: Estimation,
    means: tuple[float, float | None],
    seconds: dict[str, float],
) -> TrainedStep:
    """Return the estimate of a whole batch, all ranks and micro-batches together.

    `before` are the trainer's log-probabilities before the step of each of the `rows`, floating
    (n,) for its n tokens. `means` are the entropy of its tokens and the divergence from the initial
    model. The seconds of the estimator are added to `seconds`.

    Raises:
        ConfigError: mismatch rejection keeps nothing.
        RecordError: no turn has a return.
    """
    start = time.monotonic()
    turns = turns_of(played, how.preset, how.seed, checks=how.checks)
    estimate = estimate_turns(turns, how.preset)
    shape = len(played.turns), len(played.turns[0])
    tables = (
        table(rows, [logps.float() for logps in before], shape),
        table(rows, [torch.tensor(row.sample.logprobs) for row in rows], shape),
        table(rows, [torch.ones(len(r.sample.reply), dtype=torch.bool) for r in rows], shape),
    )
    found = estimate_rows(estimate, *tables, how.preset)
    seconds["estimator"] = time.monotonic() - start
    return TrainedStep(played, turns, estimate, found, *tables, *means, seconds)
