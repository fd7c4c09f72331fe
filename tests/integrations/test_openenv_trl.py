"""TRL's GRPO on a tiny model, with rollouts in an environment of OpenEnv."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from tests.tiny_model import make_tiny_model
from tilewright.integrations.packages import OPENENV, in_range, installed

version = installed("openenv")
if version is None or not in_range(version, OPENENV):
    pytest.skip(f"not shown: openenv {version}", allow_module_level=True)

from tests.integrations.test_openenv import index_of, server, split  # noqa: E402, F401 - a fixture

trl = pytest.importorskip("trl", reason="not shown: trl is missing")
torch = pytest.importorskip("torch")
pytestmark = pytest.mark.timeout(900)
STEPS, GROUP, NEW_TOKENS = 3, 4, 12


def rollouts_in(url: str, folder: Path, tokenizer: Any, verdicts: list[str]) -> Any:
    """Return a function of TRL's rollouts, whose rewards an environment gives."""
    from tilewright.integrations.openenv import KernelAction, KernelEnv

    def rollouts(prompts: list[str], trainer: Any) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {
            name: [] for name in ("prompt_ids", "completion_ids", "logprobs", "env_reward")
        }
        with KernelEnv(base_url=url).sync() as env:
            for prompt in prompts:
                env.reset(split=split(folder), index=index_of("k_faster"))
                ids = tokenizer(prompt, return_tensors="pt").input_ids.to(trainer.model.device)
                with torch.no_grad():
                    whole = trainer.model.generate(
                        ids, do_sample=True, max_new_tokens=NEW_TOKENS, pad_token_id=0
                    )
                answer = whole[0, ids.shape[1] :].tolist()
                step = env.step(KernelAction(reply=tokenizer.decode(answer)))
                verdicts.append(step.observation.verdict)
                found["prompt_ids"].append(ids[0].tolist())
                found["completion_ids"].append(answer)
                found["logprobs"].append([0.0] * len(answer))
                found["env_reward"].append(step.reward)
        return found

    return rollouts


def test_three_optimizer_steps_with_rewards_of_the_environment(server, tmp_path):  # noqa: F811
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, AutoTokenizer

    url, folder, _ = server
    path = make_tiny_model(tmp_path / "model")
    tokenizer = AutoTokenizer.from_pretrained(path)
    model = AutoModelForCausalLM.from_pretrained(path)
    verdicts: list[str] = []

    def environment_reward(
        completions: list[Any], env_reward: list[float], **_: Any
    ) -> list[float]:
        return [
            reward + 0.01 * len(set(text))
            for reward, text in zip(env_reward, completions, strict=True)
        ]

    before = {name: value.clone() for name, value in model.state_dict().items()}
    trainer = trl.GRPOTrainer(
        model=model,
        reward_funcs=[environment_reward],
        args=trl.GRPOConfig(
            output_dir=str(tmp_path / "out"),
            max_steps=STEPS,
            num_generations=GROUP,
            per_device_train_batch_size=GROUP,
            max_completion_length=NEW_TOKENS,
            learning_rate=1e-2,
            report_to=[],
            use_cpu=True,
            save_strategy="no",
            logging_steps=1,
        ),
        train_dataset=Dataset.from_dict({"prompt": ["def k_faster(x):"] * GROUP}),
        processing_class=tokenizer,
        rollout_func=rollouts_in(url, folder, tokenizer, verdicts),
    )
    trainer.train()
    assert trainer.state.global_step == STEPS
    assert verdicts == ["failed"] * STEPS * GROUP
    losses = [row["loss"] for row in trainer.state.log_history if "loss" in row]
    assert len(losses) == STEPS
    assert all(map(math.isfinite, losses))
    changed = [
        name
        for name, value in trainer.model.state_dict().items()
        if not torch.equal(value.cpu(), before[name])
    ]
    assert changed
