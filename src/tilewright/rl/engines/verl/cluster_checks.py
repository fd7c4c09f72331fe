"""Checks of a training with verl before its run folder exists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tilewright.errors import ConfigError, InfrastructureError, boundary
from tilewright.rl.engines.verl.memory_plan import GB, plan_memory, read_shape, require_memory
from tilewright.rl.engines.verl.registration import require_registered
from tilewright.rl.engines.verl.verl_settings import flags_of, verl_settings
from tilewright.rl.training_config import MachineSection, TrainConfig
from tilewright.rl.training_run import find_training_problems


def check_rl(config: TrainConfig, *, fresh: bool) -> None:
    """Refuse settings with which `train_rl` cannot begin; a resumed run has its problems.

    Raises:
        ConfigError: verl cannot apply a setting, the plug-in is not loaded, or there is no model.
        ProblemError: there is no such problem.
        InfrastructureError: the GPUs are not there.
    """
    from tilewright.rl.engines.verl.launch import resolved

    settings = verl_settings(config, Path("RUN"))
    check_devices(config.machine)
    _check_model(config.model.path)
    if config.machine.device == "cuda":
        plan = plan_memory(read_shape(config.model.path), config, _memory_of_gpu())
        require_memory(plan, anyway=config.machine.anyway)
    require_registered("this process")
    resolved(flags_of(settings))
    if fresh:
        find_training_problems(config)


def check_devices(machine: MachineSection) -> None:
    """Refuse GPUs that are not there, and a server that they cannot be shared by.

    Raises:
        InfrastructureError: there are fewer GPUs than the settings ask for.
    """
    if machine.gpus % machine.tensor_parallel:
        raise InfrastructureError(
            f"machine.tensor_parallel is {machine.tensor_parallel}, which does not divide "
            f"machine.gpus {machine.gpus}"
        )
    if machine.device == "cpu":
        from verl.plugin.platform import get_platform

        if get_platform().device_name != "cpu":
            raise InfrastructureError(
                "machine.device is cpu: the engine verl needs GPUs; give --device cuda, or use "
                "--engine trl"
            )
        return
    found = _gpus_of_cluster() if machine.nodes > 1 else _gpus_here()
    if found < (wanted := machine.gpus * machine.nodes):
        place = "the Ray cluster has" if machine.nodes > 1 else "torch sees"
        raise InfrastructureError(
            f"machine.gpus is {machine.gpus} on {machine.nodes} nodes, {wanted} GPUs, and {place} "
            f"{found}"
        )


def _memory_of_gpu() -> float:
    import torch

    return float(torch.cuda.get_device_properties(0).total_memory) / GB


def _gpus_here() -> int:
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def _gpus_of_cluster() -> int:
    import ray

    with boundary(InfrastructureError, "machine.nodes: no Ray cluster; start one with `ray start`"):
        ray.init(address="auto", log_to_driver=False)
    cluster: Any = ray
    try:
        return int(cluster.cluster_resources().get("GPU", 0))
    finally:
        ray.shutdown()


def _check_model(path: str) -> None:
    from transformers import AutoConfig, AutoTokenizer

    if not path or not Path(path).is_dir():
        raise ConfigError(f"model.path {path!r} is no folder; train sft writes one to RUN/model")
    with boundary(ConfigError, f"model.path {path}"):
        AutoConfig.from_pretrained(path)
        tokenizer = AutoTokenizer.from_pretrained(path)
    if tokenizer.chat_template is None:
        raise ConfigError(f"model.path {path}: its tokenizer has no chat template")
