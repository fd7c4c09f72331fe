"""The parts of TRL that the adapter uses; these tests fail when TRL changes them."""

# ruff: noqa: E402 - a machine without trl skips all of it
from __future__ import annotations

import dataclasses
import inspect
import math
import os

import pytest
import torch

pytest.importorskip("trl")
pytestmark = pytest.mark.filterwarnings("ignore")

import transformers
import trl
from torch.nn.functional import log_softmax

from tests.training_fixtures import played, toy, write_model
from tilewright.errors import ConfigError, InfrastructureError
from tilewright.evaluator.devices.devices import find_device, plan_cores
from tilewright.evaluator.processes.host import lease_name
from tilewright.evaluator.processes.prefork import open_lock
from tilewright.loop.policies.local_model import leased
from tilewright.records.file_lock import lock, try_lock, unlock
from tilewright.rl.engines.trl import models
from tilewright.rl.engines.trl.arguments import rl_arguments
from tilewright.rl.engines.trl.sampler import TransformersSampler
from tilewright.rl.engines.trl.trainer import StepHooks, TurnTrainer
from tilewright.rl.loss import kl_losses, policy_loss
from tilewright.rl.presets import SamplingSection

VERDICTS = [
    ["correct", "correct"],
    ["failed", "correct"],
    ["incorrect", None],
    ["correct", "unjudged"],
    ["correct", "failed"],
    ["correct", "correct"],
    ["rejected", "correct"],
    ["failed", "failed"],
]
OFF = "overrides.mismatch.level=off"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("lesson")
    write_model(toy(made), made / "model")
    return made


def trainer_of(
    folder, *overrides, batch=None, observed=None, adapters=None, reference=None, lease=None
):
    config = toy(folder, f"model.path={folder / 'model'}", OFF, *overrides)
    preset = config.estimator()
    seen = [] if observed is None else observed
    hooks = StepHooks(
        preset,
        config.seed,
        source=lambda _: batch or played(VERDICTS, groups=2),
        observer=lambda step, learned, logs: seen.append((step, learned, logs)) or {},
        lease=lease,
        measures_reference=adapters is not None or reference is not None,
    )
    path = str(folder / "model")
    args = rl_arguments(config, preset, folder / "run")
    return TurnTrainer(
        models.load_model(path),
        args,
        models.load_tokenizer(path),
        hooks,
        adapters=adapters,
        reference=reference,
    )


def logprobs_of(model, learned):
    """Return log-probabilities of each row on its own, without padding, (B, T, L)."""
    found = torch.zeros_like(learned.before, dtype=torch.float64)
    for b, row in enumerate(learned.played.samples):
        for t, sample in enumerate(row):
            if sample is None:
                continue
            ids = torch.tensor([sample.prompt + sample.reply])
            logits = model(input_ids=ids).logits[0, len(sample.prompt) - 1 : -1].double()
            chosen = log_softmax(logits, -1).gather(-1, torch.tensor(sample.reply)[:, None])
            found = found.index_put(
                (torch.tensor(b), torch.tensor(t), torch.arange(len(sample.reply))), chosen[:, 0]
            )
    return found


def own_loss(trainer, preset):
    learned, loss = trainer.trained, preset.loss
    return policy_loss(
        logprobs_of(trainer.model, learned),
        learned.before.double(),
        learned.rows.tokens,
        learned.rows.advantages,
        learned.rows.weights,
        clip_low=loss.clip_low,
        clip_high=loss.clip_high,
        dual_clip=loss.dual_clip,
    )


def moved(model, by):
    """Move the weights, so that ratios are no longer 1 and some are clipped."""
    torch.manual_seed(0)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(by * torch.randn_like(weight))


@pytest.mark.parametrize("preset", ["paper", "released_code", "tilewright"])
@pytest.mark.parametrize("aggregation", ["seq-mean-token-sum", "seq-mean-token-mean", "token-mean"])
def test_the_trl_loss_equals_the_tilewright_loss(folder, preset, aggregation):
    overrides = [f"preset={preset}", f"overrides.loss.aggregation={aggregation}"]
    trainer = trainer_of(folder, *overrides, "overrides.loss.scale=1")
    pieces = trainer.batch(0)
    moved(trainer.model, 0.2)
    # As in a training: `train` sets both.
    trainer.model.train()
    trainer.current_gradient_accumulation_steps = trainer.args.gradient_accumulation_steps
    ratios = (logprobs_of(trainer.model, trainer.trained) - trainer.trained.before).exp()
    assert ratios.max() > 1.28
    assert ratios[trainer.trained.rows.tokens].min() < 0.8
    theirs = sum(trainer._compute_loss(trainer.model, piece) for piece in pieces)
    wanted = own_loss(trainer, trainer.hooks.preset)
    assert abs(float(wanted)) > 1e-3
    assert float(theirs) == pytest.approx(float(wanted), abs=1e-6, rel=1e-5)


@pytest.mark.parametrize("aggregation", ["seq-mean-token-sum", "token-mean"])
def test_the_kl_term_has_the_weights_of_the_rows(folder, aggregation):
    trainer = trainer_of(
        folder,
        *("overrides.loss.kl=0.5", f"overrides.loss.aggregation={aggregation}"),
        "overrides.loss.scale=1",
        "machine.train_batch_size=3",
        reference=models.load_model(str(folder / "model")),
    )
    moved(trainer.model, 0.1)
    pieces = trainer.batch(0)
    moved(trainer.model, 0.1)
    trainer.model.train()
    trainer.current_gradient_accumulation_steps = trainer.args.gradient_accumulation_steps
    theirs = sum(trainer._compute_loss(trainer.model, piece) for piece in pieces)
    learned = trainer.trained
    now, initial = (logprobs_of(each, learned) for each in (trainer.model, trainer._reference))
    rows = learned.rows
    term = (kl_losses(now, initial, rows.tokens).sum(-1) * rows.weights).sum()
    assert float(term) > 1e-3
    wanted = own_loss(trainer, trainer.hooks.preset) + 0.5 * term
    assert float(theirs) == pytest.approx(float(wanted), abs=1e-6, rel=1e-5)


def test_the_gradient_of_a_step_is_that_of_the_tilewright_loss(folder):
    trainer = trainer_of(folder, "overrides.optimizer.steps=1", "overrides.loss.scale=0.01")
    copied = models.load_model(str(folder / "model"))
    grads, before = {}, {}

    class Capture(transformers.TrainerCallback):
        def on_pre_optimizer_step(self, *_, **__):
            # After clipping by norm, whose factor is known from the norm that is logged.
            grads.update({n: p.grad.clone() for n, p in trainer.model.named_parameters()})

    trainer.add_callback(Capture())
    observed = []
    trainer.hooks = dataclasses.replace(
        trainer.hooks, observer=lambda step, _, logs: observed.append((step, logs)) or {}
    )
    trainer.train()
    before.update(dict(copied.named_parameters()))
    trainer.model = copied
    own_loss(trainer, trainer.hooks.preset).backward()
    norm = math.sqrt(sum(float(p.grad.double().square().sum()) for p in before.values()))
    (step, logs) = observed[0]
    assert step == 1
    assert logs["grad_norm"] == pytest.approx(norm, rel=1e-4)
    assert norm > 1.0, "the clip is part of what is tested"
    for name, grad in grads.items():
        torch.testing.assert_close(grad * norm, before[name].grad, atol=1e-4, rtol=1e-3)


def test_the_learning_rate_warms_up_and_falls(folder):
    changes = ("warmup_steps=2", "schedule=linear", "steps=6", "learning_rate=0.01")
    rates = []
    trainer = trainer_of(folder, *(f"overrides.optimizer.{text}" for text in changes))
    trainer.hooks = dataclasses.replace(
        trainer.hooks, observer=lambda _, __, logs: rates.append(logs["learning_rate"]) or {}
    )
    trainer.train()
    assert rates == pytest.approx([0.01 / 3, 0.02 / 3, 0.01, 0.0075, 0.005, 0.0025])


def test_no_row_is_lost_and_empty_micro_batches_have_no_weight(folder):
    trainer = trainer_of(folder, "machine.train_batch_size=1")
    count = trainer.args.gradient_accumulation_steps
    pieces = trainer.batch(0)
    assert len(pieces) == count == 16
    learned = trainer.trained
    assert int(learned.turns.present.sum()) == 15
    assert sum(int(p["tool_mask"].sum()) for p in pieces) == int(learned.rows.tokens.sum())
    filling = [p for p in pieces if not p["tool_mask"].any() and not p["advantages"].any()]
    assert len(filling) >= 1
    assert float(trainer._compute_loss(trainer.model, filling[-1])) == 0.0


def test_a_batch_that_trl_would_step_on_twice_is_refused(folder):
    trainer = trainer_of(folder)
    # TRL calls `_prepare_inputs` once for each piece.
    for _ in range(trainer.args.gradient_accumulation_steps):
        trainer._prepare_inputs(None)
    with pytest.raises(InfrastructureError, match="each batch has one optimizer step"):
        trainer._prepare_inputs(None)
    trainer.state.global_step += 1
    trainer._prepare_inputs(None)


def test_mismatch_rejection_that_leaves_nothing_stops_with_a_reason(folder):
    trainer = trainer_of(folder, "overrides.mismatch.level=turn")
    with pytest.raises(ConfigError, match="kept none of 15 turns"):
        trainer.batch(0)


@pytest.mark.reads_settings
def test_the_reference_model_is_the_initial_model(folder):
    for adapters in (None, "lora"):
        config = toy(folder, "model.lora.rank=2", "model.lora.targets=q_proj,v_proj")
        given = models.adapters(config.model.lora) if adapters else None
        reference = None if adapters else models.load_model(str(folder / "model"))
        trainer = trainer_of(folder, adapters=given, reference=reference)
        trainer.batch(0)
        assert trainer.trained.divergence == pytest.approx(0.0, abs=1e-9)
        moved(trainer.model, 0.1)
        trainer.batch(0)
        assert trainer.trained.divergence > 1e-4


def test_the_trl_methods_that_the_trainer_uses_exist():
    def parameters(owner, name):
        return list(inspect.signature(getattr(owner, name)).parameters)

    base = trl.GRPOTrainer
    assert parameters(base, "_prepare_inputs") == ["self", "generation_batch"]
    assert parameters(base, "_compute_loss") == ["self", "model", "inputs"]
    assert parameters(base, "_save_checkpoint") == ["self", "model", "trial"]
    assert parameters(base, "log") == ["self", "logs", "start_time"]
    wanted = ["self", "num_training_steps", "optimizer"]
    assert parameters(base, "create_scheduler") == wanted
    asked = parameters(base, "_get_per_token_logps_and_entropies")
    assert asked[:7] == [
        *("self", "model", "input_ids", "attention_mask", "logits_to_keep", "batch_size"),
        "compute_entropy",
    ]
    assert trl.__version__.startswith("1.16.")


def test_every_trl_setting_of_the_estimator_is_set_explicitly(folder):
    config = toy(folder)
    preset = config.estimator()
    args = rl_arguments(config, preset, folder / "run")
    wanted = {
        "loss_type": "dr_grpo",
        "scale_rewards": "none",
        "beta": 0.0,
        "use_bias_correction_kl": False,
        "num_iterations": 1,
        "epsilon": 0.2,
        "epsilon_high": 0.28,
        "delta": 3.0,
        "importance_sampling_level": "token",
        "mask_truncated_completions": False,
        "vllm_importance_sampling_correction": False,
        "off_policy_mask_threshold": None,
        "temperature": 1.0,
        "top_k": 0,
        "top_p": 1.0,
        "repetition_penalty": 1.0,
        "disable_dropout": True,
        "top_entropy_quantile": 1.0,
        "entropy_coef": 0.0,
        "warmup_steps": 0,
        "max_grad_norm": 1.0,
        "weight_decay": 0.01,
    }
    assert {name: getattr(args, name) for name in wanted} == wanted
    assert str(args.lr_scheduler_type) in ("constant", "SchedulerType.CONSTANT")
    assert args.gradient_accumulation_steps == args.steps_per_generation
    # 16 turns in pieces of 4.
    assert args.gradient_accumulation_steps == 4


def test_the_sampler_agrees_with_the_trainer(folder):
    trainer = trainer_of(folder)
    trainer.model.train()
    sampler = TransformersSampler(
        trainer.model,
        models.load_tokenizer(str(folder / "model")),
        batch_size=3,
        lease=None,
        precision=trainer.accelerator.autocast,
        name="tiny",
    )
    sampling = SamplingSection(context_tokens=160, reply_tokens=24)
    prompts = [[20, 30, 40], [50] * 11, [60, 70], [80] * 5]
    drawn = sampler.sample(prompts, "seed", sampling)
    again = sampler.sample(prompts, "seed", sampling)
    other = sampler.sample(prompts, "another", sampling)
    assert drawn == again
    assert drawn != other
    worst = 0.0
    for sample in drawn:
        ids = torch.tensor([sample.prompt + sample.reply])
        with torch.no_grad():
            logits = trainer.model(input_ids=ids).logits[0, len(sample.prompt) - 1 : -1]
        chosen = log_softmax(logits, -1).gather(-1, torch.tensor(sample.reply)[:, None])[:, 0]
        worst = max(worst, float((chosen - torch.tensor(sample.logprobs)).abs().max()))
    assert worst < 1e-4
    assert trainer.model.training


def test_the_device_lease_is_held_in_a_step_and_free_while_scoring(folder):
    trainer = trainer_of(folder, "overrides.optimizer.steps=2", lease="cpu")
    name = lease_name(find_device("cpu"), plan_cores(list(os.sched_getaffinity(0))))
    found = []

    class Look(transformers.TrainerCallback):
        def on_pre_optimizer_step(self, *_, **__):
            with open_lock(name) as lock:
                found.append(try_lock(lock))

        def on_step_end(self, *_, **__):
            with leased("cpu"):
                found.append("free")

    trainer.add_callback(Look())
    trainer.train()
    assert found == [False, "free"] * 2


def test_a_trainer_says_that_it_waits_for_the_device(folder):
    trainer = trainer_of(folder, "overrides.optimizer.steps=1", lease="cpu")
    name = lease_name(find_device("cpu"), plan_cores(list(os.sched_getaffinity(0))))
    seen = []
    with open_lock(name) as other:
        lock(other)

        def waited(waiting):
            seen.append(waiting)
            if waiting:
                unlock(other)

        trainer.hooks = dataclasses.replace(trainer.hooks, on_wait=waited)
        trainer.train()
    assert seen == [True, False]
