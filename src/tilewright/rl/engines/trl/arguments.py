"""Every setting of TRL that the estimator depends on, spelled out: TRL changes its defaults."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from trl import GRPOConfig

from tilewright.rl.presets import Preset
from tilewright.rl.training_config import TrainConfig


def machine_arguments(config: TrainConfig, folder: Path) -> dict[str, Any]:
    """Return the arguments that supervised training and RL share."""
    machine = config.machine
    return {
        "output_dir": str(folder / "checkpoints"),
        "use_cpu": machine.device == "cpu",
        "bf16": machine.precision == "bf16",
        "fp16": False,
        "gradient_checkpointing": machine.gradient_checkpointing,
        "optim": "adamw_torch",
        "adam_beta1": 0.9,
        "adam_beta2": 0.999,
        "adam_epsilon": 1e-8,
        "seed": config.seed,
        "data_seed": config.seed,
        "disable_tqdm": True,
        "logging_strategy": "steps",
        "logging_steps": 1,
        "logging_nan_inf_filter": False,
        # Our loggers read the event log.
        "report_to": [],
        "save_strategy": "steps",
        "save_steps": config.checkpoints.every,
        # `Checkpointing` removes old checkpoints, after the new one is complete.
        "save_total_limit": None,
        "dataloader_num_workers": 0,
        "dataloader_pin_memory": False,
        "push_to_hub": False,
    }


def rl_arguments(config: TrainConfig, preset: Preset, folder: Path) -> GRPOConfig:
    """Return the arguments of RL."""
    sampling, loss, optimizer = preset.sampling, preset.loss, preset.optimizer
    rows = sampling.prompts * sampling.rollouts * sampling.turns
    count = math.ceil(rows / config.machine.train_batch_size)
    return GRPOConfig(
        **machine_arguments(config, folder),
        max_steps=optimizer.steps,
        learning_rate=optimizer.learning_rate,
        # `TurnTrainer.create_scheduler` makes the schedule of the settings.
        lr_scheduler_type="constant",
        warmup_steps=0,
        weight_decay=optimizer.weight_decay,
        max_grad_norm=optimizer.max_grad_norm,
        # One rollout batch is one optimizer step. We cut its pieces, of whatever sizes.
        gradient_accumulation_steps=count,
        steps_per_generation=count,
        per_device_train_batch_size=2,
        num_generations=2,
        num_iterations=1,
        max_completion_length=sampling.reply_tokens,
        temperature=sampling.temperature,
        top_k=sampling.top_k,
        top_p=sampling.top_p,
        min_p=None,
        repetition_penalty=1.0,
        # A token sum over rows times the longest reply: a constant that our advantages cancel.
        loss_type="dr_grpo",
        importance_sampling_level="token",
        epsilon=loss.clip_low,
        epsilon_high=loss.clip_high,
        delta=loss.dual_clip,
        # `TurnTrainer` sets the weight of the KL term for each piece.
        beta=0.0,
        use_bias_correction_kl=False,
        scale_rewards="none",
        mask_truncated_completions=False,
        top_entropy_quantile=1.0,
        entropy_coef=0.0,
        use_adaptive_entropy=False,
        off_policy_mask_threshold=None,
        disable_dropout=True,
        use_vllm=False,
        vllm_importance_sampling_correction=False,
        cast_lm_head_to_fp32=False,
        shuffle_dataset=False,
        log_completions=False,
        ignore_data_skip=True,
    )
