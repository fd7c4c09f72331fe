"""Learning to choose on action trees: episodes, advantages, updates, values and checkpoints."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import torch

from tilewright.loop.choices import sentence_scores
from tilewright.rl.choices.choice_batches import ChoiceEpisode
from tilewright.rl.choices.choice_estimates import (
    ChoiceEstimate,
    Figures,
    estimate_figures,
    estimated,
)
from tilewright.rl.choices.choice_log import STEP
from tilewright.rl.choices.choice_rows import ChoiceRow
from tilewright.rl.choices.choice_run import ChoiceRun
from tilewright.rl.choices.episode_records import record_of
from tilewright.rl.engines.choices.critic import Critic
from tilewright.rl.engines.choices.model import LanguageChoices
from tilewright.rl.engines.choices.updates import ChoiceUpdate, InitialModel, made_optimizers
from tilewright.rl.engines.trl import models
from tilewright.rl.engines.trl.checkpoints import checkpoint, complete, latest
from tilewright.rl.engines.trl.quiet_process import quiet
from tilewright.rl.presets import Preset
from tilewright.rl.training_config import TrainConfig

STATE = "state.pt"
"""File of a checkpoint."""
Note = Callable[[str], None]
Reached = Callable[[int, int, str], None]


def train_choices(
    config: TrainConfig, folder: Path, note: Note, *, reached: Reached = lambda *_: None
) -> dict[str, Any]:
    """Train until all steps are done; return a summary.

    The run continues from its last complete checkpoint, and takes the choices in its log again.

    Raises:
        ConfigError: the model, the trees or a setting cannot be used.
        RecordError: a tree or a checkpoint is damaged.
    """
    quiet(config.machine)
    with closing(ChoiceRun(config, folder)) as run:
        return _trained(run, note, reached)


def _trained(run: ChoiceRun, note: Note, reached: Reached) -> dict[str, Any]:
    config, preset, folder = run.config, run.preset, run.folder
    policy = _policy(config, preset)
    reference = InitialModel(_policy(config, preset)) if preset.loss.kl > 0 else None
    update = ChoiceUpdate(policy, reference, made_optimizers(policy, preset), preset, config.seed)
    place = folder / "checkpoints"
    done, steps = _restored(place, update), preset.optimizer.steps
    if done == 0:
        note(f"before training: {_value_line(run.score(0, policy))}")
    scores: Figures = {}
    for step in range(done, steps):
        reached(step, steps, f"step {step + 1}")
        figures = _step(run, update, step)
        run.record(step + 1, f"{STEP}{step:05}", figures)
        note(f"step {step + 1} of {steps}: {_line(figures)}")
        every = config.scores.every
        if step + 1 == steps or (every and (step + 1) % every == 0):
            scores = run.score(step + 1, policy)
            note(f"after step {step + 1}: {_value_line(scores)}")
        if (step + 1) % config.checkpoints.every == 0 or step + 1 == steps:
            _save(place, step + 1, update, config.checkpoints.keep)
    model = models.save(policy.model, models.load_tokenizer(config.model.path), folder / "model")
    return {"run": str(folder), "model": str(model), "steps": steps, "values": scores}


def _policy(config: TrainConfig, preset: Preset) -> LanguageChoices:
    path = models.initial_model(config)
    model = models.load_model(path).to(config.machine.device).eval()
    width = int(model.get_input_embeddings().weight.shape[1])
    critic = Critic(width, preset.choices.critic_hidden, config.seed).to(config.machine.device)
    tokenizer = models.load_tokenizer(path)
    return LanguageChoices(
        f"local:{path}",
        model,
        critic,
        tokenizer,
        rows=config.machine.train_batch_size,
        steps=preset.sampling.turns,
    )


def _step(run: ChoiceRun, update: ChoiceUpdate, step: int) -> Figures:
    began = time.monotonic()
    episodes = run.play(step, update.policy)
    played = time.monotonic()
    estimate = estimated([record_of(item) for item in episodes], run.preset)
    figures = estimate_figures(estimate)
    figures |= update.update(step, rows_of(episodes, estimate, run.preset))
    seconds = {"rollouts": played - began, "update": time.monotonic() - played}
    return figures | {f"seconds/{name}": value for name, value in seconds.items()}


def rows_of(
    episodes: Sequence[ChoiceEpisode], estimate: ChoiceEstimate, preset: Preset
) -> list[ChoiceRow]:
    """Return a row for each decision, in order."""
    tables = zip(episodes, estimate.advantages, estimate.returned, strict=True)
    return [
        ChoiceRow(
            item.state,
            item.position.step,
            item.choice.taken,
            tuple(
                sentence_scores(item.choice.logprobs, item.sentences, preset.choices.normalisation)
            ),
            advantage,
            returned,
        )
        for episode, advantages, returns in tables
        for item, advantage, returned in zip(episode.decisions, advantages, returns, strict=True)
    ]


def _restored(place: Path, update: ChoiceUpdate) -> int:
    """Load the newest complete checkpoint; return its step, or 0 without one."""
    found = latest(place)
    if found is None:
        return 0
    device = update.policy.model.get_input_embeddings().weight.device
    state = torch.load(Path(found) / STATE, map_location=device, weights_only=True)
    update.policy.model.load_state_dict(state["model"])
    update.policy.critic.load_state_dict(state["critic"])
    update.optimizers.load(state["optimizers"])
    return int(state["step"])


def _save(place: Path, step: int, update: ChoiceUpdate, keep: int) -> None:
    """Write a checkpoint, and remove all but the newest ones."""
    folder = checkpoint(place, step)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    state = {
        "step": step,
        "model": update.policy.model.state_dict(),
        "critic": update.policy.critic.state_dict(),
        "optimizers": update.optimizers.state(),
    }
    torch.save(state, folder / STATE)
    complete(folder)
    numbers = sorted(int(item.name.rpartition("-")[2]) for item in place.glob("checkpoint-*"))
    for number in numbers[:-keep]:
        shutil.rmtree(checkpoint(place, number))


def _line(figures: Figures) -> str:
    names = ("return", "steps", "correct", "best", "entropy", "kl", "critic_loss")
    shown = ((name, figures[name]) for name in names)
    return ", ".join(f"{name} {value:.3f}" for name, value in shown if value is not None)


def _value_line(figures: Figures) -> str:
    names = ("train/greedy_share", "train/sampled_share", "held_out/greedy_share")
    shown = ((name, figures[name]) for name in names if name in figures)
    return ", ".join(f"{name} {value:.3f}" for name, value in shown if value is not None)
