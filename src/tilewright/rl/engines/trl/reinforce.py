"""Learning from rewards: the run around the trainer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from tilewright.rl.engines.trl import models
from tilewright.rl.engines.trl.arguments import quiet, rl_arguments
from tilewright.rl.engines.trl.checkpoints import latest
from tilewright.rl.engines.trl.sampler import TransformersSampler
from tilewright.rl.engines.trl.trainer import Learned, Lesson, TurnTrainer
from tilewright.rl.tokens import Sampler
from tilewright.rl.training_config import TrainConfig
from tilewright.rl.training_metrics import Watch, line_of, scored
from tilewright.rl.training_run import TrainingRun
from tilewright.rl.worlds import NOWHERE, Seen

__all__ = ["train_rl"]

TurnFinished = Callable[[str], None]
Wrap = Callable[[TransformersSampler], Sampler]
MODEL = "model"


def _as_it_is(sampler: TransformersSampler) -> Sampler:
    return sampler


class Scores(TrainerCallback):  # type: ignore[misc]
    """Scores held-out problems while the weights are those of a step. Lifetime: one sitting."""

    def __init__(self, score: Callable[[int], None], every: int) -> None:
        self._score = score
        self._every = every

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ANN401, ARG002
        """Score, if it is time."""
        step = int(state.global_step)
        if step == state.max_steps or (self._every and step % self._every == 0):
            self._score(step)


def train_rl(
    config: TrainConfig, folder: Path, told: TurnFinished, seen: Seen, wrap: Wrap = _as_it_is
) -> dict[str, Any]:
    """Train until all steps are made; return what came of it.

    The run goes on from its last whole checkpoint, and from the event log beyond it. `wrap` may put
    a sampler of one's own before the engine's, say one that adds what others wrote.

    Raises:
        ConfigError: the model or a setting cannot be used, or mismatch rejection leaves nothing.
        InfrastructureError: the judge fails.
    """
    quiet(config.machine)
    learning = TrainingRun(config, folder, seen)
    try:
        return _trained(learning, told, wrap)
    finally:
        learning.close()


def _trained(learning: TrainingRun, told: TurnFinished, wrap: Wrap) -> dict[str, Any]:
    config, preset, folder = learning.config, learning.preset, learning.folder
    tokenizer = models.load_tokenizer(models.started(config))
    # In a made-up world no time is measured that a model could disturb.
    lease = config.machine.device if learning.world.device != NOWHERE else None
    watch = Watch(config.health, preset, told)
    figures: dict[str, dict[str, float | None]] = {"last": {}, "held_out": {}}

    def observe(step: int, learned: Learned, logs: dict[str, float]) -> dict[str, float | None]:
        found = watch.figures(learned, _measured(learned, logs))
        learning.record(step, learned.played.trajectories, found)
        figures["last"] = found
        told(f"step {step} of {preset.optimizer.steps}: {line_of(found)}")
        return found

    def score(step: int) -> None:
        played = learning.score(step, sampler)
        if played is not None:
            found = scored(played, preset)
            learning.record(step, played.trajectories, found)
            figures["held_out"] = found
            told(f"held out, after step {step}: {line_of(found)}")

    lesson = Lesson(
        preset,
        config.seed,
        source=lambda step: learning.play(step, sampler),
        observer=observe,
        lease=lease,
        keep=config.checkpoints.keep,
        measures_reference=config.health.reference,
    )
    trainer = _trainer(config, folder, tokenizer, lesson)
    model = trainer.accelerator.unwrap_model(trainer.model)
    own = TransformersSampler(
        model,
        tokenizer,
        together=config.machine.sampling_batch_size,
        lease=lease,
        autocast=trainer.accelerator.autocast,
        name=f"local:{config.model.path}",
    )
    sampler = wrap(own)
    trainer.add_callback(Scores(score, config.scores.every))
    whole = latest(folder / "checkpoints")
    trainer.train(resume_from_checkpoint=str(whole[0]) if whole else None)
    place = models.save(model, tokenizer, folder / MODEL)
    made = {"run": str(folder), "model": str(place), "steps": int(trainer.state.global_step)}
    return {**made, **figures}


def _trainer(
    config: TrainConfig,
    folder: Path,
    tokenizer: Any,  # noqa: ANN401 - untyped package
    lesson: Lesson,
) -> TurnTrainer:
    path = config.model.path
    # Adapters can be switched off; without them the beginning is a model of its own.
    copied = config.health.reference and not config.model.lora.rank
    return TurnTrainer(
        models.load_model(path),
        rl_arguments(config, lesson.preset, folder),
        tokenizer,
        lesson,
        adapters=models.adapters(config.model.lora),
        reference=models.load_model(path) if copied else None,
    )


def _measured(learned: Learned, logs: dict[str, float]) -> dict[str, float | None]:
    """Return what the engine measured of a step, by our names."""
    found: dict[str, float | None] = {
        "loss": logs.get("loss"),
        "gradient": logs.get("grad_norm"),
        "entropy": learned.entropy,
        "kl": learned.divergence,
        "clipped": logs.get("clipped"),
    }
    return found | {f"seconds/{name}": value for name, value in learned.seconds.items()}
