"""Checks of a training before its run folder exists: the device, the model, the data."""

from __future__ import annotations

import torch

from tilewright.errors import InfrastructureError
from tilewright.evaluator.devices.devices import find_device
from tilewright.rl.engines.trl import models
from tilewright.rl.engines.trl.paged_sampler import check_paged
from tilewright.rl.engines.trl.sft import read_conversations
from tilewright.rl.training_config import MachineSection, TrainConfig
from tilewright.rl.training_run import find_training_problems


def check_sft(config: TrainConfig, *, fresh: bool) -> None:
    """Refuse settings with which `train_sft` cannot begin.

    Raises:
        ConfigError: the data or the model cannot be used.
        RecordError: a row has no messages.
        InfrastructureError: this machine has no such device.
    """
    check_device(config.machine)
    if config.model.path:
        _check_model(config)
    else:
        models.check_fresh(config.model.from_scratch)
    if fresh:
        read_conversations(config.data.conversations)


def check_rl(config: TrainConfig, *, fresh: bool) -> None:
    """Refuse settings with which `train_rl` cannot begin; a resumed run has its problems.

    Raises:
        ConfigError: the model, a problem or the sampler cannot be used.
        ProblemError: there is no such problem.
        InfrastructureError: this machine has no such device.
    """
    check_device(config.machine)
    _check_model(config)
    if config.machine.sampler == "paged":
        check_paged(models.load_shape(config.model.path))
    if fresh:
        find_training_problems(config)


def check_device(machine: MachineSection) -> None:
    """Refuse a device that this machine, or its torch, does not have."""
    device = find_device(machine.device)
    if device.is_gpu and not torch.cuda.is_available():
        raise InfrastructureError(
            f"machine.device is {machine.device}: the torch of this Python cannot use "
            f"{device.model}; install a torch with CUDA, or give cpu"
        )


def _check_model(config: TrainConfig) -> None:
    models.load_tokenizer(models.initial_model(config))
    models.load_shape(config.model.path)
