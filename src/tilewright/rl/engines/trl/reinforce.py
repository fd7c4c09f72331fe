"""Learning from rewards: the run around the trainer."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

from datasets import disable_progress_bars

from tilewright.errors import ConfigError, boundary
from tilewright.loop.answer_evaluator import OnEvent
from tilewright.rl.engines.trl import models
from tilewright.rl.engines.trl.arguments import rl_arguments
from tilewright.rl.engines.trl.checkpoints import Checkpointing, checkpoint, latest
from tilewright.rl.engines.trl.quiet_process import quiet
from tilewright.rl.engines.trl.sampler import TransformersSampler, sampling_precision
from tilewright.rl.engines.trl.sampler_choice import make_sampler
from tilewright.rl.engines.trl.trainer import StepHooks, TurnTrainer
from tilewright.rl.tokens import Sampler
from tilewright.rl.training_config import TrainConfig
from tilewright.rl.training_run import TrainingRun
from tilewright.rl.training_session import Note, Reached, TrainingSession
from tilewright.rl.worlds import measures_time

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
    disable_progress_bars()
    with closing(TrainingRun(config, folder, on_event)) as run:
        return _trained(run, note, wrap, reached)


def _trained(run: TrainingRun, note: Note, wrap: Wrap, reached: Reached) -> dict[str, Any]:
    config, preset, folder = run.config, run.preset, run.folder
    path = models.initial_model(config)
    tokenizer = models.load_tokenizer(path)
    lease = config.machine.device if measures_time(run.world) else None
    session = TrainingSession(run, note, reached)
    hooks = StepHooks(
        preset,
        config.seed,
        source=session.play,
        observer=session.observe,
        checks=config.settings.reward.checks,
        lease=lease,
        measures_reference=config.health.reference,
        after_step=session.score,
        on_wait=session.wait,
    )
    trainer = _trainer(config, folder, tokenizer, hooks)
    trainer.add_callback(Checkpointing(config.checkpoints.keep, run.best_scored))
    model = trainer.accelerator.unwrap_model(trainer.model)
    machine, name = config.machine, f"local:{path}"
    precision = sampling_precision(machine, model, trainer.accelerator.autocast)
    made = make_sampler(machine, model, tokenizer, lease, precision, name, session.wait, note)
    session.sampler = wrap(made)
    trainer.train(resume_from_checkpoint=latest(folder / "checkpoints"))
    place = models.save(model, tokenizer, folder / models.FOLDER)
    done = int(trainer.state.global_step)
    found = {"run": str(folder), "model": str(place), "steps": done, "last": session.last}
    return {**found, "held_out": session.held_out, "best": _best(run, done, note)}


def _best(run: TrainingRun, done: int, note: Note) -> dict[str, Any] | None:
    """Return the step and the checkpoint of the best held-out reward, and name it if it is old."""
    step = run.best_scored(done)
    if step is None:
        return None
    place = checkpoint(run.folder / "checkpoints", step)
    if step != done:
        note(f"the held-out reward was best after step {step}: {place}")
    return {"step": step, "checkpoint": str(place)}


def _trainer(
    config: TrainConfig,
    folder: Path,
    tokenizer: Any,  # noqa: ANN401 - untyped package
    hooks: StepHooks,
) -> TurnTrainer:
    path = config.model.path
    # Adapters can be switched off; without them the reference is a second copy of the model.
    needed = config.health.reference or hooks.preset.loss.kl > 0
    copied = needed and not config.model.lora.rank
    model, reference = models.load_model(path), models.load_model(path) if copied else None
    arguments = rl_arguments(config, hooks.preset, folder)
    with boundary(ConfigError, "model.lora") if config.model.lora.rank else nullcontext():
        trainer = TurnTrainer(
            model,
            arguments,
            tokenizer,
            hooks,
            adapters=models.adapters(config.model.lora),
            reference=reference,
        )
    return trainer
