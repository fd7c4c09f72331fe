"""The memory of a training by arithmetic, and the table of the guide."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner

from tests.conventions.tree import ROOT
from tests.training_fixtures import toy
from tilewright.cli.main import cli
from tilewright.errors import InfrastructureError
from tilewright.rl.engines.verl.memory_plan import (
    plan_memory,
    plan_table,
    read_shape,
    require_memory,
    shape_of,
)
from tilewright.rl.engines.verl.verl_engine import PLANNED
from tilewright.rl.training_config import TrainConfig

QWEN3 = {
    "0.6B": (1024, 28, 16, 3072, True),
    "4B": (2560, 36, 32, 9728, True),
    "8B": (4096, 36, 32, 12288, False),
    "14B": (5120, 40, 40, 17408, False),
}


def shape(name):
    hidden, layers, heads, inner, tied = QWEN3[name]
    return shape_of(
        name,
        {
            "hidden_size": hidden,
            "num_hidden_layers": layers,
            "num_attention_heads": heads,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "intermediate_size": inner,
            "vocab_size": 151936,
            "tie_word_embeddings": tied,
        },
    )


def planned(*, reference: bool = True, rank: int = 0, **machine: Any) -> TrainConfig:
    return TrainConfig.model_validate(
        {
            "machine": {"precision": "bf16", **machine},
            "health": {"reference": reference},
            "model": {"lora": {"rank": rank}},
        }
    )


@pytest.mark.parametrize(
    ("name", "billions"), [("0.6B", 0.596), ("4B", 4.02), ("8B", 8.19), ("14B", 14.77)]
)
def test_parameters_are_those_that_the_models_state(name, billions):
    assert shape(name).parameters / 1e9 == pytest.approx(billions, rel=2e-3)


def test_the_state_is_shared_and_the_server_is_not():
    plan = plan_memory(shape("8B"), planned(gpus=8, tensor_parallel=2), 80.0)
    # Weights, gradients, two moments and the initial model, in fp32.
    assert plan.state == pytest.approx(8.19 * 20 / 8, rel=2e-3)
    assert plan.waiting == pytest.approx(8.19 * 16 / 8, rel=2e-3)
    assert plan.server == pytest.approx(8.19 * 2 / 2, rel=2e-3)
    assert plan.cache == pytest.approx(0.5 * 80 - plan.server)
    # Keys and values of 36 layers and 8 heads of 128 numbers, two bytes each, on two GPUs.
    assert plan.cached_tokens == int(plan.cache * 1e9 * 2 / (2 * 36 * 8 * 128 * 2))
    assert plan.fits


@pytest.mark.reads_settings
def test_a_model_that_does_not_fit_is_refused_with_the_table(tmp_path):
    config = toy(tmp_path, "machine.precision=bf16")
    plan = plan_memory(shape("8B"), config, 80.0)
    with pytest.raises(InfrastructureError, match=r"--anyway[^|]*\n\| model \|") as refused:
        require_memory(plan, anyway=config.machine.anyway)
    assert "| 8B | 1 | 80 |" in str(refused.value)
    require_memory(plan, anyway=toy(tmp_path, "machine.anyway=true").machine.anyway)
    require_memory(plan_memory(shape("4B"), config, 141.0), anyway=False)


@pytest.mark.reads_settings
def test_adapters_and_the_initial_model_change_the_state():
    whole, alone, adapters = (
        plan_memory(shape("4B"), config, 80.0).state
        for config in (planned(), planned(reference=False), planned(rank=16))
    )
    assert (whole / alone, adapters / alone) == (pytest.approx(20 / 16), pytest.approx(4 / 16))


def test_offload_leaves_the_memory_to_the_server():
    kept, moved = (
        plan_memory(shape("14B"), planned(gpus=4, offload=off), 80.0) for off in (False, True)
    )
    assert moved.waiting == 0.0
    assert moved.cache > kept.cache


def test_the_command_prints_the_plan_of_a_model(tmp_path):
    (tmp_path / "model").mkdir()
    hidden = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    sizes = {**hidden, "intermediate_size": 128, "vocab_size": 500}
    (tmp_path / "model" / "config.json").write_text(json.dumps(sizes), encoding="utf-8")
    assert read_shape(str(tmp_path / "model")).name == "model"
    (tmp_path / "c.yaml").write_text(f"model: {{path: {tmp_path / 'model'}}}\n", encoding="utf-8")
    done = CliRunner().invoke(
        cli, ["train", "rl", str(tmp_path / "c.yaml"), "--engine", "verl", "--plan"]
    )
    assert done.exit_code == 0, done.output
    assert [line.split("|")[3].strip() for line in done.output.splitlines()[2:]] == ["80", "141"]
    other = CliRunner().invoke(cli, ["train", "rl", str(tmp_path / "c.yaml"), "--plan"])
    assert other.exit_code == 2


def test_a_folder_without_a_model_is_named_with_the_missing_file(tmp_path):
    (tmp_path / "c.yaml").write_text("model: {path: nowhere}\n", encoding="utf-8")
    done = CliRunner().invoke(
        cli, ["train", "rl", str(tmp_path / "c.yaml"), "--engine", "verl", "--plan"]
    )
    assert done.exit_code == 2
    assert "model.path 'nowhere': no memory plan without nowhere/config.json" in done.output


def test_the_tables_of_the_guide_are_computed():
    plans = [
        plan_memory(shape(name), planned(gpus=gpus), memory)
        for name in QWEN3
        for gpus in (1, 8)
        for memory in (80.0, 141.0)
    ]
    guide = (ROOT / "docs" / "guides" / "train-on-a-cluster.md").read_text(encoding="utf-8")
    assert plan_table(plans) in guide
    example = replace(shape("8B"), name="qwen3-8b")
    config = planned(gpus=8, tensor_parallel=2)
    assert plan_table([plan_memory(example, config, memory) for memory in PLANNED]) in guide
