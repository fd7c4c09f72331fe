"""Training with the sampler `paged`, from the first sample to the model."""

# ruff: noqa: E402 - a machine without trl skips all of it
from __future__ import annotations

import pytest
from click.testing import CliRunner

pytest.importorskip("trl")
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(300)]

import transformers

from tests.training_fixtures import begun, settings, silent, toy, write_model, write_toy
from tilewright.cli.main import cli
from tilewright.records.event_log import read_events
from tilewright.records.events import Stepped
from tilewright.rl.engines.trl import models
from tilewright.rl.engines.trl.model_samples import sample_model
from tilewright.rl.engines.trl.reinforce import train_rl

PAGED = (
    "machine.sampler=paged",
    "overrides.optimizer.steps=2",
    "overrides.evaluation.samples=1",
    "overrides.mismatch.level=off",
)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    made = tmp_path_factory.mktemp("paged")
    write_model(toy(made), made / "model")
    return made


def trained(place, name, *changes):
    """Return what a run printed, and the figures of its steps."""
    folder, printed = begun(place, name, *PAGED, *changes), []
    train_rl(settings(place, *PAGED, *changes), folder, printed.append, silent)
    stepped = [event for event in read_events(folder) if isinstance(event, Stepped)]
    return printed, [each.figures for each in stepped if each.batch.startswith("step")]


@pytest.mark.reads_settings
@pytest.mark.parametrize("changes", [(), ("model.lora.rank=2",)], ids=["weights", "adapters"])
def test_sampler_and_trainer_agree_before_and_after_an_update(place, changes):
    printed, steps = trained(place, f"run{len(changes)}", *changes)
    assert [figures["mismatch/most_log"] < 1e-5 for figures in steps] == [True, True]
    assert [figures["unjudged"] for figures in steps] == [0.0, 0.0]
    assert sum("pages of 128 tokens, 8 rows at once" in line for line in printed) == 1


def test_each_precision_of_sampling_is_honoured(place):
    gaps = []
    for updates, sampling in ("bf16", "null"), ("bf16", "fp32"), ("fp32", "bf16"):
        changes = (f"machine.precision={updates}", f"machine.sampler_precision={sampling}")
        _, steps = trained(place, f"{updates}-{sampling}", *changes)
        gaps.append(steps[0]["mismatch/most_log"])
    assert all(1e-6 < gap < 0.1 for gap in gaps)


def test_a_model_that_is_not_trained_is_sampled(place):
    folder = begun(place, "gate", *PAGED)
    found = sample_model(settings(place, *PAGED), folder, silent)
    replies = [sample.reply for row in found.samples for sample in row if sample is not None]
    assert len(replies) == 16
    assert all(replies)


def test_a_model_without_attention_over_pages_leaves_no_run_folder(place, tmp_path):
    tokenizer = models.load_tokenizer(str(place / "model"))
    config = transformers.MistralConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        sliding_window=8,
    )
    models.save(transformers.MistralForCausalLM(config), tokenizer, tmp_path / "model")
    runs = tmp_path / "runs"
    changes = (
        f"model.path={tmp_path / 'model'}",
        f"settings.runs={runs}",
        "machine.sampler=paged",
    )
    given = [part for change in changes for part in ("--set", change)]
    found = CliRunner().invoke(cli, ["train", "rl", str(write_toy(tmp_path)), *given])
    assert found.exit_code == 2
    assert "machine.sampler is paged, and the model mistral has layers of sliding" in found.output
    assert not runs.exists()


@pytest.mark.parametrize(("setting", "value"), [("top_k", 5), ("top_p", 0.5)])
def test_a_cut_distribution_names_its_setting(tmp_path, setting, value):
    changes = ("machine.sampler=paged", f"overrides.sampling.{setting}={value}")
    given = [part for change in changes for part in ("--set", change)]
    found = CliRunner().invoke(cli, ["train", "rl", str(write_toy(tmp_path)), *given])
    assert found.exit_code == 2
    assert setting in found.output
