"""Learning from rewards: the run around the trainer."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

from tilewright.errors import ConfigError, boundary
from tilewright.loop.answer_evaluator import OnEvent
from tilewright.rl.book_world import off_store_share
from tilewright.rl.engines.trl import models
from tilewright.rl.engines.trl.arguments import quiet, rl_arguments
from tilewright.rl.engines.trl.checkpoints import Checkpointing, checkpoint, latest
from tilewright.rl.engines.trl.sampler import TransformersSampler, sampling_precision
from tilewright.rl.engines.trl.sampler_choice import make_sampler
from tilewright.rl.engines.trl.trainer import StepHooks, TurnTrainer
from tilewright.rl.rollouts import RolloutBatch
from tilewright.rl.tokens import Sampler
from tilewright.rl.training_config import TrainConfig
from tilewright.rl.training_metrics import (
    TrainedStep,
    Values,
    metrics_line,
    silence_warning,
    silent_batches,
    speed_text,
    step_metrics,
    unjudged_warning,
    verdict_metrics,
)
from tilewright.rl.training_run import TrainingRun
from tilewright.rl.worlds import BOOK, measures_time

SAMPLING, UPDATING = "sampling and judging replies", "updating the model"
SCORING, SAVING = "scoring the held-out problems", "saving"
"""Phases of a step."""
WAITING = "waiting for the device"
"""The phase while another process has the lease of the device."""
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


class _Session:
    """The functions that a trainer calls in each step. Lifetime: one session of a run."""

    sampler: Sampler

    def __init__(self, run: TrainingRun, note: Note, reached: Reached) -> None:
        self._run, self._note, self._reached = run, note, reached
        self._steps = run.preset.optimizer.steps
        self._checks = run.config.settings.reward.checks
        self._now = (0, 1, SAMPLING)
        """Finished steps, the number of the step that is running, and its phase."""
        self.last: Values = {}
        self.held_out: Values = {}

    def _begin(self, done: int, number: int, phase: str) -> None:
        self._now = done, number, phase
        self._reached(done, self._steps, f"step {number}: {phase}")

    def wait(self, waiting: bool) -> None:
        """Show that the wait for the device begins or ends."""
        done, number, phase = self._now
        self._reached(done, self._steps, f"step {number}: {WAITING if waiting else phase}")

    def play(self, step: int) -> RolloutBatch:
        """Return the rollout batch of a step, from 0."""
        self._begin(step, step + 1, f"{SAMPLING}{speed_text(self.last)}")
        played = self._run.play(step, self.sampler)
        self._begin(step, step + 1, UPDATING)
        return played

    def observe(self, step: int, data: TrainedStep, logs: dict[str, float]) -> Values:
        """Record the metrics of a step, from 1, and return them."""
        run = self._run
        found = step_metrics(data, run.preset, checks=self._checks)
        found |= {"loss": logs.get("loss"), "gradient": logs.get("grad_norm")}
        found["learning_rate"] = logs.get("learning_rate")
        found |= {"entropy": data.entropy, "kl": data.divergence, "clipped": logs.get("clipped")}
        found |= {f"seconds/{name}": value for name, value in data.seconds.items()}
        if run.config.world == BOOK:
            found["off_store"] = off_store_share(turn for row in data.played.turns for turn in row)
        if warning := unjudged_warning(found, run.config.health):
            self._note(warning)
        run.record_log_ratios(data.played, data.before - data.sampler)
        run.record(step, data.played, found)
        self.last = found
        self._note(f"step {step} of {self._steps}: {metrics_line(found)}")
        _look_for_silence(run, step, self._note)
        self._begin(step, step, SAVING)
        return found

    def score(self, step: int) -> bool:
        """Score the held-out problems if it is time; tell whether no earlier score is better."""
        run, every = self._run, self._run.config.scores.every
        if not run.held_out or (step != self._steps and (not every or step % every)):
            return False
        self._begin(step, step, SCORING)
        played = run.score(step, self.sampler)
        self.held_out = found = verdict_metrics(played, run.preset, checks=self._checks)
        run.record(step, played, found)
        self._note(f"held out, after step {step}: {metrics_line(found)}")
        return run.best_scored(step) == step


def _look_for_silence(run: TrainingRun, step: int, note: Note) -> None:
    """Warn of batches in a row without any advantage, and stop the run after too many."""
    trained = run.trained(step)
    count, most = silent_batches(trained), run.config.health.stop_silent
    if warning := silence_warning(count, trained[-1]):
        note(warning)
    if most and count >= most:
        raise ConfigError(
            f"{count} batches in a row had no advantage, and health.stop_silent is {most}: lower "
            "overrides.optimizer.learning_rate, give problems of which the model solves some, or "
            "set health.stop_silent=0"
        )


def _trained(run: TrainingRun, note: Note, wrap: Wrap, reached: Reached) -> dict[str, Any]:
    config, preset, folder = run.config, run.preset, run.folder
    path = models.initial_model(config)
    tokenizer = models.load_tokenizer(path)
    lease = config.machine.device if measures_time(run.world) else None
    session = _Session(run, note, reached)
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
