"""Faults of an adapter of verl, planted one at a time: the golden test must find each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from unittest.mock import patch

import torch
from tensordict import TensorDict
from verl.experimental.agent_loop import AgentLoopOutput

from tilewright.rl import training_step
from tilewright.rl.engines.verl import agent_loop, turn_trainer
from tilewright.rl.engines.verl.row_targets import RowTarget
from tilewright.rl.presets import Preset


@contextmanager
def _nothing() -> Iterator[None]:
    yield


@dataclass(frozen=True)
class Fault:
    """A fault: other settings of the estimator, or other code while a step is computed."""

    preset: Callable[[Preset], Preset] = lambda preset: preset
    on: Callable[[], AbstractContextManager] = _nothing


UNPLANTED = Fault()


def _changed(section: str, **values: object) -> Callable[[Preset], Preset]:
    def change(preset: Preset) -> Preset:
        part = getattr(preset, section).model_copy(update=values)
        return preset.model_copy(update={section: part})

    return change


def _by_position():
    """Group rollouts by their place in the order in which rows arrived."""
    real = training_step.turns_of
    order = torch.tensor([0, 1, 0, 1, 1, 0, 1, 0])
    return patch.object(
        training_step, "turns_of", lambda *a, **k: replace(real(*a, **k), prompts=order)
    )


def _loss_mask_left():
    real = turn_trainer.fields_of

    def fields(targets: list[RowTarget]) -> TensorDict:
        return real(targets).exclude("loss_mask")

    return patch.object(turn_trainer, "fields_of", fields)


def _copied_reward():
    def as_dict(self: AgentLoopOutput) -> dict:
        found = AgentLoopOutput.as_dict(self)
        found.pop("turn_reward", None)
        return found

    return patch.object(agent_loop.TurnOutput, "as_dict", as_dict)


def _weighted_padding():
    real = turn_trainer.row_targets

    def targets(places, lengths, rows) -> list[RowTarget]:
        found = real(places, lengths, rows)
        ones = [RowTarget(torch.ones_like(t.mask), torch.ones_like(t.advantages)) for t in found]
        return [ones[n] if place is None else found[n] for n, place in enumerate(places)]

    return patch.object(turn_trainer, "row_targets", targets)


FAULTS = {
    "groups by position": Fault(on=_by_position),
    "advantages divided by their deviation": Fault(
        _changed("advantage", estimator="grpo", divide_by_std=True, grpo_singleton="return")
    ),
    "mean over all rows": Fault(_changed("loss", denominator="all")),
    "loss_mask left as it was": Fault(on=_loss_mask_left),
    "mismatch by row": Fault(_changed("mismatch", level="turn")),
    "reward of the last turn": Fault(on=_copied_reward),
    "padding row with weight": Fault(on=_weighted_padding),
}
