"""The settings of verl follow those of a run, and what verl cannot apply is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.training_fixtures import toy
from tilewright.errors import ConfigError
from tilewright.rl.engines.verl.registered_names import TRAINER
from tilewright.rl.engines.verl.verl_settings import flags_of, verl_settings

RUN = Path("RUN")


def values(config):
    return {setting.path: setting.value for setting in verl_settings(config, RUN)}


@pytest.mark.reads_settings
def test_each_setting_of_the_machine_reaches_verl(tmp_path):
    config = toy(
        tmp_path,
        *("machine.gpus=4", "machine.nodes=2", "machine.tensor_parallel=2", "machine.offload=true"),
        *("machine.sampler=sglang", "machine.server_memory=0.7", "machine.precision=bf16"),
        *("machine.sampler_precision=fp32", "overrides.sampling.prompts=8"),
        "machine.verl={actor_rollout_ref.rollout: {max_num_seqs: 9}}",
    )
    found = values(config)
    assert found["trainer.n_gpus_per_node"] == 4
    assert found["trainer.nnodes"] == 2
    assert found["actor_rollout_ref.rollout.tensor_model_parallel_size"] == 2
    assert found["actor_rollout_ref.rollout.name"] == "sglang"
    assert found["actor_rollout_ref.rollout.gpu_memory_utilization"] == 0.7
    assert found["actor_rollout_ref.rollout.dtype"] == "float32"
    assert found["actor_rollout_ref.actor.strategy"] == "fsdp2"
    assert found["actor_rollout_ref.actor.fsdp_config.param_offload"] is True
    assert found["actor_rollout_ref.actor.fsdp_config.optimizer_offload"] is True
    assert found["actor_rollout_ref.actor.fsdp_config.mixed_precision.param_dtype"] == "bf16"
    assert found["actor_rollout_ref.rollout.max_num_seqs"] == 9


@pytest.mark.parametrize("preset", ["paper", "released_code", "tilewright"])
def test_verl_neither_weighs_nor_rejects_nor_steps_twice(tmp_path, preset):
    found = values(toy(tmp_path, f"preset={preset}"))
    assert found["actor_rollout_ref.actor.loss_agg_mode"] == "token-sum"
    assert found["algorithm.rollout_correction.rollout_is"] is None
    assert found["algorithm.rollout_correction.rollout_rs"] is None
    assert found["trainer.v1.trainer_mode"] == TRAINER
    assert found["critic.enable"] is False, "verl would advise to enable it"
    assert found["actor_rollout_ref.actor.clip_ratio_high"] == 0.28
    assert found["actor_rollout_ref.actor.clip_ratio_c"] == 3.0
    assert found["actor_rollout_ref.rollout.top_k"] == -1
    # verl multiplies the mini-batch by the rollouts: all rows of a batch are one optimizer step.
    rows = found["actor_rollout_ref.actor.ppo_mini_batch_size"]
    assert rows * found["actor_rollout_ref.rollout.n"] == 2 * 2 * 4


@pytest.mark.parametrize(
    "change",
    [
        "overrides.loss.dual_clip=null",
        "overrides.loss.kl=0.1",
        "overrides.optimizer.schedule=linear",
        "overrides.optimizer.warmup_steps=3",
        "overrides.optimizer.skip_without_advantage=true",
        "overrides.evaluation.temperature=0",
        "machine.sampler=generate",
    ],
)
def test_a_setting_that_verl_cannot_apply_is_named(tmp_path, change):
    name = change.partition("=")[0]
    with pytest.raises(ConfigError, match=name.replace(".", r"\.")):
        values(toy(tmp_path, change))


@pytest.mark.parametrize(
    "path",
    [
        "algorithm.rollout_correction.rollout_is",
        "algorithm.adv_estimator",
        "actor_rollout_ref.actor.loss_agg_mode",
        "+trainer.v1.sampler.custom_sampler.path",
        "critic.enable",
    ],
)
def test_no_setting_of_verl_may_replace_a_part_of_the_estimator(tmp_path, path):
    with pytest.raises(ConfigError, match="estimator of tilewright"):
        values(toy(tmp_path, f"machine.verl={{{path}: token}}"))


@pytest.mark.parametrize("gpus", [1, 2, 3, 5, 8, 16, 64])
@pytest.mark.parametrize("rollouts", [3, 4])
def test_one_mini_batch_holds_all_rows_in_equal_shares(tmp_path, gpus, rollouts):
    change = f"overrides.sampling.rollouts={rollouts}"
    found = values(toy(tmp_path, f"machine.gpus={gpus}", change))
    rows = found["actor_rollout_ref.actor.ppo_mini_batch_size"] * rollouts
    assert rows >= 2 * 2 * rollouts
    assert rows % gpus == 0
    assert rows - gpus * rollouts < 2 * 2 * rollouts, "no larger than it must be"


def test_flags_are_words_without_spaces(tmp_path):
    flags = flags_of(verl_settings(toy(tmp_path), RUN))
    assert "++tilewright.run=RUN" in flags
    assert "trainer.logger=[]" in flags
    assert "algorithm.rollout_correction.rollout_rs=null" in flags
    assert not any(" " in flag for flag in flags)


def test_each_value_has_a_source(tmp_path):
    sources = {item.path: item.source for item in verl_settings(toy(tmp_path), RUN)}
    assert sources["actor_rollout_ref.actor.clip_ratio_c"] == "preset, loss.dual_clip"
    assert sources["trainer.nnodes"] == "machine section, machine.nodes"
    assert sources["trainer.logger"].startswith("tilewright, ")
