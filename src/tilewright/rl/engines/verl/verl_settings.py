"""The settings of a training as settings of verl, each with its origin. No import of verl."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright.errors import ConfigError
from tilewright.rl.engines.verl.registered_names import AGENT_LOOP, TRAINER
from tilewright.rl.presets import Preset, SamplingSection
from tilewright.rl.training_config import MachineSection, TrainConfig

ACTOR, ROLLOUT, REFERENCE, MODEL = (
    f"actor_rollout_ref.{part}" for part in ("actor", "rollout", "ref", "model")
)
PRECISIONS = {"fp32": "float32", "bf16": "bfloat16"}
NEW = (
    "tilewright",
    "data.tilewright_run",
    "ray_kwargs.ray_init.log_to_driver",
    f"{ACTOR}.fsdp_config.mixed_precision",
    f"{REFERENCE}.fsdp_config.mixed_precision",
)
"""Beginnings of paths that are not in verl's own tree."""
FORBIDDEN = ("algorithm.", "critic.", "distillation.", "reward.", "trainer.v1.", "skip.")
"""Sections of verl whose settings would replace a part of the estimator."""


@dataclass(frozen=True, slots=True)
class VerlSetting:
    """One setting of verl. `origin` is the path of ours that it follows, or why it is fixed."""

    path: str
    value: Any
    origin: str

    @property
    def source(self) -> str:
        """The section of ours that it follows, in words."""
        section = self.origin.partition(".")[0]
        if section in Preset.model_fields:
            return f"preset, {self.origin}"
        if section == "machine":
            return f"machine section, {self.origin}"
        return f"tilewright, {self.origin}"

    @property
    def flag(self) -> str:
        """The setting as an argument of verl's command."""
        added = any(self.path == name or self.path.startswith(f"{name}.") for name in NEW)
        return f"{'++' if added else ''}{self.path}={_text(self.value)}"


def verl_settings(config: TrainConfig, folder: Path) -> list[VerlSetting]:
    """Return every setting of verl that differs from its default, or on which a run depends.

    Raises:
        ConfigError: verl cannot apply a setting; the message names it.
    """
    preset, machine = config.estimator(), config.machine
    refuse_unknown_to_verl(config, preset)
    own = [
        *_run(config, folder, preset),
        *_sampling(config, preset),
        *_estimator(preset),
        *_update(config, preset),
        *_machine(machine, preset),
    ]
    return own + _more(machine, {setting.path for setting in own})


def refuse_unknown_to_verl(config: TrainConfig, preset: Preset) -> None:
    """Refuse settings that verl would ignore or apply differently.

    Raises:
        ConfigError: there is one; the message names it and the reason.
    """
    optimizer, loss, machine = preset.optimizer, preset.loss, config.machine
    reasons = {
        "overrides.loss.dual_clip": loss.dual_clip is None and "its loss always has a dual clip",
        "overrides.loss.kl": loss.kl > 0
        and "its weight of the divergence is one number for all batches",
        "overrides.optimizer.schedule": optimizer.schedule != "constant"
        and "its schedules begin at a rate of 0",
        "overrides.optimizer.warmup_steps": optimizer.warmup_steps > 0
        and "its warm-up begins at a rate of 0",
        "overrides.optimizer.skip_without_advantage": optimizer.skip_without_advantage
        and "its optimizer takes each step",
        "overrides.evaluation.temperature": bool(config.data.held_out)
        and preset.evaluation.temperature == 0
        and "its servers sample at a temperature above 0",
    }
    for path, reason in reasons.items():
        if reason:
            raise ConfigError(f"{path}: the engine verl cannot apply it: {reason}")
    if not loss.clip_low < 1.0:
        raise ConfigError("overrides.loss.clip_low: the engine verl needs a value below 1")
    if machine.sampler in ("generate", "paged"):
        raise ConfigError("machine.sampler: the engine verl samples with vllm or sglang")


def _run(config: TrainConfig, folder: Path, preset: Preset) -> Iterator[VerlSetting]:
    steps, every = preset.optimizer.steps, config.scores.every
    held_out = bool(config.data.held_out)
    place = "pkg://tilewright.rl.engines.verl.numbered_prompts"
    fixed = "the run"
    yield VerlSetting("tilewright.run", str(folder), fixed)
    yield VerlSetting("data.tilewright_run", str(folder), fixed)
    yield VerlSetting("data.custom_cls.path", place, fixed)
    yield VerlSetting("data.custom_cls.name", "NumberedPrompts", fixed)
    yield VerlSetting("data.train_files", "trained", fixed)
    yield VerlSetting("data.val_files", "held_out", fixed)
    yield VerlSetting("data.shuffle", False, "the run draws problems")
    yield VerlSetting("data.dataloader_num_workers", 0, fixed)
    yield VerlSetting("data.train_batch_size", preset.sampling.prompts, "sampling.prompts")
    yield VerlSetting("data.val_batch_size", None if held_out else 1, "data.held_out")
    yield VerlSetting("trainer.v1.trainer_mode", TRAINER, "the trainer of tilewright")
    yield VerlSetting("trainer.total_epochs", 1, fixed)
    yield VerlSetting("trainer.total_training_steps", steps, "optimizer.steps")
    yield VerlSetting("trainer.logger", [], "the event log has the metrics")
    yield VerlSetting("trainer.default_local_dir", str(folder / "checkpoints"), fixed)
    yield VerlSetting("trainer.resume_mode", "auto", fixed)
    yield VerlSetting("trainer.save_freq", config.checkpoints.every, "checkpoints.every")
    yield VerlSetting("trainer.max_actor_ckpt_to_keep", config.checkpoints.keep, "checkpoints.keep")
    yield VerlSetting(
        "trainer.test_freq", (every or steps) if held_out else -1, "scores.every, data.held_out"
    )
    yield VerlSetting("trainer.val_before_train", False, fixed)
    # Ray keeps the output of its processes in files of its own.
    yield VerlSetting("ray_kwargs.ray_init.log_to_driver", False, fixed)


def _sampling(config: TrainConfig, preset: Preset) -> Iterator[VerlSetting]:
    section, machine = preset.sampling, config.machine
    longest = section.context_tokens - section.reply_tokens
    if config.data.held_out:
        longest = max(longest, preset.evaluation.context_tokens - section.reply_tokens)
    yield VerlSetting(f"{ROLLOUT}.n", section.rollouts, "sampling.rollouts")
    yield VerlSetting(f"{ROLLOUT}.val_kwargs.n", preset.evaluation.samples, "evaluation.samples")
    yield VerlSetting("data.max_prompt_length", longest, "sampling.context_tokens")
    yield VerlSetting("data.max_response_length", section.reply_tokens, "sampling.reply_tokens")
    yield VerlSetting(f"{ROLLOUT}.max_model_len", section.context_tokens, "sampling.context_tokens")
    yield VerlSetting(f"{ROLLOUT}.temperature", section.temperature, "sampling.temperature")
    yield VerlSetting(f"{ROLLOUT}.top_k", section.top_k or -1, "sampling.top_k")
    yield VerlSetting(f"{ROLLOUT}.top_p", section.top_p, "sampling.top_p")
    yield VerlSetting(f"{ROLLOUT}.seed", config.seed, "seed")
    yield VerlSetting(f"{ROLLOUT}.calculate_log_probs", True, "mismatch rejection")
    yield VerlSetting(f"{ROLLOUT}.agent.default_agent_loop", AGENT_LOOP, "one output for each turn")
    yield VerlSetting(f"{ROLLOUT}.name", machine.sampler or "vllm", "machine.sampler")
    precision = machine.sampler_precision or machine.precision
    yield VerlSetting(f"{ROLLOUT}.dtype", PRECISIONS[precision], "machine.sampler_precision")


def _estimator(preset: Preset) -> Iterator[VerlSetting]:
    loss, own = preset.loss, "the estimator of tilewright"
    yield VerlSetting(f"{ACTOR}.policy_loss.loss_mode", "vanilla", own)
    yield VerlSetting(f"{ACTOR}.loss_agg_mode", "token-sum", "weights of rows are in advantages")
    yield VerlSetting(f"{ACTOR}.clip_ratio", loss.clip_low, "loss.clip_low")
    yield VerlSetting(f"{ACTOR}.clip_ratio_low", loss.clip_low, "loss.clip_low")
    yield VerlSetting(f"{ACTOR}.clip_ratio_high", loss.clip_high, "loss.clip_high")
    yield VerlSetting(f"{ACTOR}.clip_ratio_c", loss.dual_clip, "loss.dual_clip")
    yield VerlSetting(f"{ACTOR}.entropy_coeff", 0, own)
    yield VerlSetting("algorithm.adv_estimator", "grpo", "no critic; its advantages are unused")
    # Without it verl advises to set `critic.enable`, which `machine.verl` may not name.
    yield VerlSetting("critic.enable", False, own)
    yield VerlSetting("algorithm.use_kl_in_reward", False, own)
    yield VerlSetting("algorithm.filter_groups.enable", False, own)
    for name, value in (
        ("rollout_is", None),
        ("rollout_rs", None),
        ("bypass_mode", False),
    ):
        yield VerlSetting(f"algorithm.rollout_correction.{name}", value, own)


def _update(config: TrainConfig, preset: Preset) -> Iterator[VerlSetting]:
    section, optimizer, machine = preset.sampling, preset.optimizer, config.machine
    one = "one optimizer step for each batch"
    yield VerlSetting(f"{ACTOR}.ppo_mini_batch_size", _mini_batch(section, machine), one)
    yield VerlSetting(f"{ACTOR}.ppo_epochs", 1, one)
    yield VerlSetting(f"{ACTOR}.use_dynamic_bsz", True, "machine.train_batch_size")
    tokens = machine.train_batch_size * section.context_tokens
    yield VerlSetting(f"{ACTOR}.ppo_max_token_len_per_gpu", tokens, "machine.train_batch_size")
    yield VerlSetting(f"{ACTOR}.optim.lr", optimizer.learning_rate, "optimizer.learning_rate")
    yield VerlSetting(f"{ACTOR}.optim.lr_scheduler_type", "constant", "optimizer.schedule")
    yield VerlSetting(f"{ACTOR}.optim.lr_warmup_steps", 0, "optimizer.warmup_steps")
    decay = optimizer.weight_decay
    yield VerlSetting(f"{ACTOR}.optim.weight_decay", decay, "optimizer.weight_decay")
    norm = optimizer.max_grad_norm
    yield VerlSetting(f"{ACTOR}.optim.clip_grad", norm, "optimizer.max_grad_norm")
    yield VerlSetting(f"{ACTOR}.data_loader_seed", config.seed, "seed")
    # A weight of 0 measures the divergence alone.
    yield VerlSetting(f"{ACTOR}.use_kl_loss", config.health.reference, "health.reference")
    yield VerlSetting(f"{ACTOR}.kl_loss_coef", 0.0, "loss.kl")
    kept = ["model", "optimizer", "extra", "hf_model"]
    yield VerlSetting(f"{ACTOR}.checkpoint.save_contents", kept, "resume, and RUN/model")
    loaded = ["model", "optimizer", "extra"]
    yield VerlSetting(f"{ACTOR}.checkpoint.load_contents", loaded, "resume")
    yield VerlSetting(f"{MODEL}.path", config.model.path, "model.path")
    lora = config.model.lora
    yield VerlSetting(f"{MODEL}.lora_rank", lora.rank, "model.lora.rank")
    yield VerlSetting(f"{MODEL}.lora_alpha", lora.alpha, "model.lora.alpha")
    # Servers get merged weights, so that they compute what the trainer computes.
    yield VerlSetting(f"{MODEL}.lora.merge", lora.rank > 0, "model.lora.rank")
    yield VerlSetting(f"{MODEL}.target_modules", _targets(lora.targets), "model.lora.targets")
    recomputed = machine.gradient_checkpointing
    yield VerlSetting(
        f"{MODEL}.enable_gradient_checkpointing", recomputed, "machine.gradient_checkpointing"
    )


def _mini_batch(section: SamplingSection, machine: MachineSection) -> int:
    """Return the least mini-batch that holds all rows of a batch, in equal shares of the GPUs.

    verl multiplies it by the rollouts, and padding rows fill it.
    """
    step = math.lcm(section.rollouts, machine.gpus * machine.nodes) // section.rollouts
    return math.ceil(section.prompts * section.turns / step) * step


def _machine(machine: MachineSection, preset: Preset) -> Iterator[VerlSetting]:
    yield VerlSetting("trainer.n_gpus_per_node", machine.gpus, "machine.gpus")
    yield VerlSetting("trainer.nnodes", machine.nodes, "machine.nodes")
    yield VerlSetting("trainer.device", machine.device, "machine.device")
    yield VerlSetting(
        f"{ROLLOUT}.tensor_model_parallel_size", machine.tensor_parallel, "machine.tensor_parallel"
    )
    yield VerlSetting(
        f"{ROLLOUT}.gpu_memory_utilization", machine.server_memory, "machine.server_memory"
    )
    # No row asks for a reward of verl.
    yield VerlSetting("reward.num_workers", 1, "the run has the rewards")
    workers = math.gcd(8, preset.sampling.prompts)
    yield VerlSetting(f"{ROLLOUT}.agent.num_workers", workers, "sampling.prompts")
    yield VerlSetting(f"{ACTOR}.strategy", machine.shard, "machine.shard")
    precision = {"param_dtype": machine.precision, "reduce_dtype": "fp32", "buffer_dtype": "fp32"}
    for part in (ACTOR, REFERENCE):
        for name, value in precision.items():
            path = f"{part}.fsdp_config.mixed_precision.{name}"
            yield VerlSetting(path, value, "machine.precision")
        yield VerlSetting(f"{part}.fsdp_config.param_offload", machine.offload, "machine.offload")
    yield VerlSetting(f"{ACTOR}.fsdp_config.optimizer_offload", machine.offload, "machine.offload")


def _more(machine: MachineSection, own: set[str]) -> list[VerlSetting]:
    """Return the user's own settings of verl; none may change what the run sets."""
    found = [VerlSetting(path, value, "machine.verl") for path, value in _leaves(machine.verl)]
    for setting in found:
        path = setting.path.lstrip("+")
        if path in own or any(path.startswith(section) for section in FORBIDDEN):
            raise ConfigError(
                f"machine.verl.{path}: the run sets it itself, or the estimator of tilewright "
                "replaces it; leave it out"
            )
    return found


def _leaves(tree: dict[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        path = f"{before}{name}"
        if isinstance(value, dict):
            yield from _leaves(value, f"{path}.")
        else:
            yield path, value


def _targets(text: str) -> str | list[str]:
    names = [name.strip() for name in text.split(",")]
    return names[0] if len(names) == 1 else names


def flags_of(settings: Iterable[VerlSetting]) -> list[str]:
    """Return the settings as arguments of `python -m verl.trainer.main_ppo`."""
    return [setting.flag for setting in settings]


def _text(value: Any) -> str:  # noqa: ANN401 - a value of a setting
    """Return a value in the grammar of hydra, without a space."""
    if isinstance(value, str):
        return value if value and all(c.isalnum() or c in "._-/:" for c in value) else f"'{value}'"
    return json.dumps(value, separators=(",", ":"))
