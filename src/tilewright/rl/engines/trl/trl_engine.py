"""The engine `trl`, as the command line finds it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tilewright.errors import ConfigError
from tilewright.loop.answer_evaluator import OnEvent
from tilewright.rl.engines.training_engine import TrainingEngine
from tilewright.rl.training_config import MachineSection, TrainConfig


def _check(config: TrainConfig, *, fresh: bool) -> None:
    from tilewright.rl.engines.trl.preflight import check_rl

    refuse_settings_of_verl(config.machine)
    check_rl(config, fresh=fresh)


def refuse_settings_of_verl(machine: MachineSection) -> None:
    """Refuse settings of the machine that only the engine verl can apply.

    Raises:
        ConfigError: one is set; the message names it.
    """
    default = MachineSection()
    found = {
        "gpus": machine.gpus > 1,
        "nodes": machine.nodes > 1,
        "tensor_parallel": machine.tensor_parallel > 1,
        "sampler": machine.sampler in ("vllm", "sglang"),
        "server_memory": machine.server_memory != default.server_memory,
        "shard": machine.shard != default.shard,
        "offload": machine.offload,
        "anyway": machine.anyway,
        "verl": bool(machine.verl),
    }
    for name, is_set in found.items():
        if is_set:
            raise ConfigError(f"machine.{name}: only the engine verl can apply it: --engine verl")


def _train(
    config: TrainConfig,
    folder: Path,
    note: Callable[[str], None],
    on_event: OnEvent,
    *,
    reached: Callable[[int, int, str], None],
) -> dict[str, Any]:
    from tilewright.rl.engines.trl.reinforce import train_rl

    return train_rl(config, folder, note, on_event, reached=reached)


ENGINE = TrainingEngine(
    summary="TRL: one process on one device",
    needed={"trl": "", "transformers": "", "datasets": "", "peft": ""},
    excluded={"verl": "0"},
    install=(
        "pip install 'tilewright[train]' in an environment without verl; in a clone: make install"
    ),
    check_rl=_check,
    train_rl=_train,
)
