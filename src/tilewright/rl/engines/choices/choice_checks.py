"""Checks of learning to choose before its run folder exists: the model and the trees."""

from __future__ import annotations

from pathlib import Path

from tilewright.errors import ConfigError
from tilewright.rl.choices.action_tree import read_trees
from tilewright.rl.choices.choice_run import check_trees
from tilewright.rl.engines.trl import models
from tilewright.rl.engines.trl.preflight import check_device
from tilewright.rl.training_config import TrainConfig


def check_choices(config: TrainConfig, *, fresh: bool) -> None:
    """Refuse settings with which `train_choices` cannot begin; a resumed run has its trees.

    Raises:
        ConfigError: the model, the trees or a setting cannot be used.
        RecordError: a tree is damaged.
        InfrastructureError: this machine has no such device.
    """
    check_device(config.machine)
    models.load_tokenizer(models.initial_model(config))
    models.load_shape(config.model.path)
    if config.model.lora.rank:
        raise ConfigError("model.lora.rank: `train choices` trains all weights; give 0")
    if not fresh:
        return
    if not config.data.trees:
        raise ConfigError("data.trees is empty: name a file of action trees")
    held_out = config.data.held_out_trees
    check_trees(read_trees(Path(config.data.trees)), read_trees(Path(held_out)) if held_out else ())
