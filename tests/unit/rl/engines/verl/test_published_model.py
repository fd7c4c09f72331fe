"""RUN/model has the weights of verl's last checkpoint, with adapters merged into them."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("peft")
pytestmark = pytest.mark.filterwarnings("ignore")

from peft import LoraConfig, get_peft_model  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

from tests.engine_batch import write_model  # noqa: E402
from tests.engine_model import logprobs, tiny_model  # noqa: E402
from tilewright.errors import RecordError  # noqa: E402
from tilewright.loop.policies.local_model import load_causal_model  # noqa: E402
from tilewright.rl.engines.verl.published_model import publish  # noqa: E402


def checkpoint(run):
    """Return the folder in which verl writes the weights of step 7."""
    (run / "checkpoints" / "global_step_7" / "actor" / "huggingface").mkdir(parents=True)
    newest = run / "checkpoints" / "latest_checkpointed_iteration.txt"
    newest.write_text("7", encoding="utf-8")
    return run / "checkpoints" / "global_step_7" / "actor" / "huggingface"


def test_merged_weights_compute_what_the_adapters_computed(tmp_path):
    initial = write_model(tmp_path) / "model"
    adapted = get_peft_model(
        tiny_model(),
        LoraConfig(r=4, lora_alpha=12, target_modules="all-linear", init_lora_weights=False),
    ).eval()
    run = tmp_path / "run"
    state = {name: value.contiguous().clone() for name, value in adapted.state_dict().items()}
    save_file(state, checkpoint(run) / "model.safetensors")
    found = load_causal_model(
        str(publish(run, initial, 12 / 4)), torch.float32, RecordError, "the published model"
    ).eval()
    prompt, reply = [3, 4, 5], [9, 8, 7, 0]
    with torch.no_grad():
        torch.testing.assert_close(
            logprobs(found, prompt, reply), logprobs(adapted, prompt, reply), atol=1e-5, rtol=1e-5
        )
        before = logprobs(tiny_model(), prompt, reply)
        assert (before - logprobs(found, prompt, reply)).abs().max() > 0.01


def test_a_model_that_cannot_be_written_leaves_the_one_before(tmp_path):
    before = tmp_path / "model" / "config.json"
    before.parent.mkdir()
    before.write_text("{}")
    checkpoint(tmp_path)
    with pytest.raises(RecordError, match="the checkpoint has no weights"):
        publish(tmp_path, tmp_path, 1.0)
    assert before.read_text() == "{}"


def test_a_run_without_a_checkpoint_is_refused(tmp_path):
    with pytest.raises(RecordError, match="verl left no checkpoint"):
        publish(tmp_path, tmp_path, None)
    checkpoint(tmp_path)
    with pytest.raises(RecordError, match="the checkpoint has no weights"):
        publish(tmp_path, tmp_path, 1.0)
