"""The parts of each step that every engine shares: rollouts, metrics, scores, warnings."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.errors import ConfigError
from tilewright.rl.book_world import off_store_share
from tilewright.rl.rollouts import RolloutBatch
from tilewright.rl.tokens import Sampler
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
from tilewright.rl.worlds import BOOK

SAMPLING, UPDATING = "sampling and judging replies", "updating the model"
SCORING, SAVING = "scoring the held-out problems", "saving"
"""Phases of a step."""
WAITING = "waiting for the device"
"""The phase while another process has the lease of the device."""
Note = Callable[[str], None]
Reached = Callable[[int, int, str], None]
"""Receives the number of finished steps, that of all steps, and the phase that begins."""


class TrainingSession:
    """The functions that an engine calls in each step. Lifetime: one session of a run."""

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
        self.play_held_out(step)
        return run.best_scored(step) == step

    def play_held_out(self, step: int) -> RolloutBatch:
        """Play a batch of the held-out problems after so many steps, and record its metrics."""
        run = self._run
        self._begin(step, step, SCORING)
        played = run.score(step, self.sampler)
        self.held_out = found = verdict_metrics(played, run.preset, checks=self._checks)
        run.record(step, played, found)
        self._note(f"held out, after step {step}: {metrics_line(found)}")
        return played


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
