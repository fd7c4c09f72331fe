"""Learning from rewards: the run around the trainer."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from tilewright.loop.answer_evaluator import OnEvent
from tilewright.records.events import WITHOUT_DEVICE
from tilewright.rl.engines.trl import models
from tilewright.rl.engines.trl.arguments import quiet, rl_arguments
from tilewright.rl.engines.trl.checkpoints import Checkpointing, latest
from tilewright.rl.engines.trl.sampler import TransformersSampler
from tilewright.rl.engines.trl.trainer import StepHooks, TurnTrainer
from tilewright.rl.rollouts import RolloutBatch
from tilewright.rl.tokens import Sampler
from tilewright.rl.training_config import TrainConfig
from tilewright.rl.training_metrics import (
    TrainedStep,
    metrics_line,
    speed_text,
    step_metrics,
    unjudged_warning,
    verdict_metrics,
)
from tilewright.rl.training_run import TrainingRun

SAMPLING, UPDATING = "sampling and judging replies", "updating the model"
"""Phases of a step."""
Note = Callable[[str], None]
Reached = Callable[[int, int, str], None]
"""Receives the number of finished steps, that of all steps, and the phase that begins."""
Wrap = Callable[[TransformersSampler], Sampler]


def train_rl(
    config: TrainConfig,
    folder: Path,
    note: Note,
    on_event: OnEvent,
    wrap: Wrap = lambda sampler: sampler,
    *,
    reached: Reached = lambda *_: None,
) -> dict[str, Any]:
    """Train until all steps are done; return a summary.

    The run continues from its last complete checkpoint, and from the event log after it. `note`
    receives a line for each step, `reached` each phase, and `on_event` the progress of
    evaluations. `wrap` returns a replacement of the engine's sampler, for example one that adds
    replies from elsewhere.

    Raises:
        ConfigError: the model or a setting cannot be used, or mismatch rejection keeps nothing.
        InfrastructureError: the judge fails.
    """
    quiet(config.machine)
    with closing(TrainingRun(config, folder, on_event)) as run:
        return _trained(run, note, wrap, reached)


def _trained(run: TrainingRun, note: Note, wrap: Wrap, reached: Reached) -> dict[str, Any]:
    config, preset, folder = run.config, run.preset, run.folder
    path = models.initial_model(config)
    tokenizer = models.load_tokenizer(path)
    # A synthetic world measures no time, so no other process can disturb it.
    lease = config.machine.device if run.world.device != WITHOUT_DEVICE else None
    metrics: dict[str, dict[str, float | None]] = {"last": {}, "held_out": {}}
    steps = preset.optimizer.steps

    def play(step: int) -> RolloutBatch:
        reached(step, steps, f"{SAMPLING}{speed_text(metrics['last'])}")
        played = run.play(step, sampler)
        reached(step, steps, UPDATING)
        return played

    def observe(step: int, data: TrainedStep, logs: dict[str, float]) -> dict[str, float | None]:
        found = step_metrics(data, preset)
        found |= {"loss": logs.get("loss"), "gradient": logs.get("grad_norm")}
        found |= {"entropy": data.entropy, "kl": data.divergence, "clipped": logs.get("clipped")}
        found |= {f"seconds/{name}": value for name, value in data.seconds.items()}
        if warning := unjudged_warning(found, config.health):
            note(warning)
        run.record(step, data.played, found)
        metrics["last"] = found
        note(f"step {step} of {steps}: {metrics_line(found)}")
        reached(step, steps, "saving")
        return found

    def score(step: int) -> None:
        every = config.scores.every
        if not run.held_out or (step != steps and (not every or step % every)):
            return
        reached(step, steps, "scoring the held-out problems")
        if (played := run.score(step, sampler)) is not None:
            metrics["held_out"] = found = verdict_metrics(played, preset)
            run.record(step, played, found)
            note(f"held out, after step {step}: {metrics_line(found)}")

    reference = config.health.reference
    hooks = StepHooks(preset, config.seed, play, observe, lease, reference, score)
    trainer = _trainer(config, folder, tokenizer, hooks)
    model = trainer.accelerator.unwrap_model(trainer.model)
    batch, autocast = config.machine.sampling_batch_size, trainer.accelerator.autocast
    sampler = wrap(TransformersSampler(model, tokenizer, batch, lease, autocast, f"local:{path}"))
    trainer.train(resume_from_checkpoint=latest(folder / "checkpoints"))
    place = models.save(model, tokenizer, folder / models.FOLDER)
    done = int(trainer.state.global_step)
    return {"run": str(folder), "model": str(place), "steps": done, **metrics}


def _trainer(
    config: TrainConfig,
    folder: Path,
    tokenizer: Any,  # noqa: ANN401 - untyped package
    hooks: StepHooks,
) -> TurnTrainer:
    path = config.model.path
    # Adapters can be switched off; without them the reference is a second copy of the model.
    copied = config.health.reference and not config.model.lora.rank
    trainer = TurnTrainer(
        models.load_model(path),
        rl_arguments(config, hooks.preset, folder),
        tokenizer,
        hooks,
        adapters=models.adapters(config.model.lora),
        reference=models.load_model(path) if copied else None,
    )
    trainer.add_callback(Checkpointing(config.checkpoints.keep))
    return trainer
