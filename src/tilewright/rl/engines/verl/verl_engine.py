"""The engine `verl`, as the command line finds it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tilewright.loop.answer_evaluator import OnEvent
from tilewright.rl.engines.training_engine import TrainingEngine
from tilewright.rl.engines.verl.memory_plan import plan_memory, plan_table, read_shape
from tilewright.rl.engines.verl.verl_settings import flags_of, verl_settings
from tilewright.rl.training_config import TrainConfig

VERSION = "0.9.1"
"""The version of verl whose classes the adapter extends."""
PLANNED = (80.0, 141.0)
"""Memory of the GPUs in a plan: H100 and H200, in units of 1e9 bytes."""


def _check(config: TrainConfig, *, fresh: bool) -> None:
    from tilewright.rl.engines.verl.cluster_checks import check_rl

    check_rl(config, fresh=fresh)


def _train(
    config: TrainConfig,
    folder: Path,
    note: Callable[[str], None],
    on_event: OnEvent,  # noqa: ARG001 - another process judges
    *,
    reached: Callable[[int, int, str], None],
) -> dict[str, Any]:
    from tilewright.rl.engines.verl.verl_training import train_rl

    return train_rl(config, folder, note, reached=reached)


def _settings_text(config: TrainConfig) -> str:
    from tilewright.rl.engines.verl.launch import resolved_text

    return resolved_text(verl_settings(config, Path("RUN")))


def _memory_table(config: TrainConfig) -> str:
    shape = read_shape(config.model.path)
    return plan_table([plan_memory(shape, config, memory) for memory in PLANNED])


def _flags(config: TrainConfig, folder: Path) -> list[str]:
    return flags_of(verl_settings(config, folder.resolve()))


ENGINE = TrainingEngine(
    summary="verl: several GPUs and nodes, with a server that samples",
    needed={"verl": VERSION, "ray": "", "TransferQueue": ""},
    excluded={"trl": "1"},
    install="pip install 'tilewright[verl]' in an environment without trl; in a clone: make verl",
    check_rl=_check,
    train_rl=_train,
    settings_text=_settings_text,
    flags=_flags,
    memory_table=_memory_table,
)
