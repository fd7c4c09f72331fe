"""From an estimate to the fields of verl's rows: masks and advantages, padding rows included."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tilewright.errors import InfrastructureError
from tilewright.rl.estimator import LossRows
from tilewright.rl.loss import for_engine

Place = tuple[int, int] | None
"""Trajectory and turn of a row of verl; `None`: verl added the row as padding."""

NORMALISER = 1.0
"""verl's divisor under `loss_agg_mode=token-sum`.

Its loss is then the plain sum of the token losses of all ranks and micro-batches. The other modes
divide by a count of rows or tokens that includes rejected and padding rows.
"""


@dataclass(frozen=True, slots=True)
class RowTarget:
    """The fields of one row of n reply tokens.

    Attributes:
        mask: int64 (n,), 1 for the tokens in the loss. verl has it as `response_mask`, which its
            loss reads, and as `loss_mask`, which it counts.
        advantages: float32 (n,), 0 outside the mask.
    """

    mask: Tensor
    advantages: Tensor


def row_targets(
    places: Sequence[Place], lengths: Sequence[int], found: LossRows
) -> list[RowTarget]:
    """Return the fields of each row, in verl's order; a padding row has weight 0.

    verl sums the clipped token losses of all rows. A token's loss is homogeneous in its advantage,
    so the advantage A weight gives the weighted sum of `policy_loss` (ADR 25). `lengths` are the
    reply tokens of each row.

    Raises:
        InfrastructureError: a row of the loss is not among verl's rows, or is there twice.
    """
    scaled = for_engine(found.advantages, found.weights, NORMALISER)
    _require_all(places, found.weights)
    targets = []
    for place, length in zip(places, lengths, strict=True):
        mask = torch.zeros(length, dtype=torch.int64)
        advantages = torch.zeros(length, dtype=torch.float32)
        if place is not None:
            kept = found.tokens[place][:length]
            mask, advantages = kept.to(torch.int64), torch.where(kept, scaled[place], 0.0).float()
        targets.append(RowTarget(mask, advantages))
    return targets


def _require_all(places: Sequence[Place], weights: Tensor) -> None:
    real = [place for place in places if place is not None]
    learned = {(b, t) for b, t in torch.nonzero(weights > 0.0).tolist()}
    if len(set(real)) != len(real) or not learned <= set(real):
        raise InfrastructureError(
            f"verl has {len(real)} rows of {len(set(real))} turns, and {len(learned - set(real))} "
            "turns of the loss are not among them"
        )
