"""A run that trains a model with any engine: its folder, its rollout batches, its metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from torch import Tensor

from tilewright._version import __version__
from tilewright.errors import ConfigError, RecordError, writing
from tilewright.loop.answer_evaluator import OnEvent
from tilewright.loop.run_state import lines_of
from tilewright.records import Problem
from tilewright.records.event_log import EventLog, read_events, turns_of
from tilewright.records.events import Form, RunStarted, Stepped
from tilewright.records.run_folder import PROBLEMS
from tilewright.rl.book_world import BookWorld
from tilewright.rl.earlier_batches import EarlierBatches
from tilewright.rl.logged_rewards import batch_of
from tilewright.rl.presets import Preset
from tilewright.rl.prompt_contexts import (
    NO_CONTEXTS,
    Contexts,
    contexts_of_run,
    read_contexts,
    write_contexts,
)
from tilewright.rl.rollouts import EventHistory, RolloutBatch, Rollouts
from tilewright.rl.tokens import Sampler, log_ratio_file, write_log_ratios
from tilewright.rl.training_config import TrainConfig
from tilewright.rl.training_folder import CONTEXTS, was_begun
from tilewright.rl.trajectories import ShownTurns, all_turns, drawn_problems, trajectories_of
from tilewright.rl.worlds import World, open_world, problems_at

HELD_OUT = "held_out.jsonl"
STEP, SCORE = "step", "score"
"""Beginnings of the names of batches: those that are trained on, and those of held-out problems."""
FIRST_SCORED = 1_000_000_000
"""Number of the first trajectory on held-out problems, above those of all trained ones."""


class TrainingRun:
    """Samples and records the batches that a model learns from. Lifetime: one session of a run."""

    def __init__(self, config: TrainConfig, folder: Path, on_event: OnEvent) -> None:
        self.config, self.folder = config, folder
        self.preset: Preset = config.estimator()
        section = config.settings.eval
        required = section.rules.require_custom_kernel or config.require_custom_kernel
        rules = section.rules.model_copy(update={"require_custom_kernel": required})
        judging = {"eval": section.model_copy(update={"rules": rules})}
        settings = config.settings.model_copy(update=judging)
        self.world: World = open_world(config.world, settings, folder, on_event, config.verdicts)
        begun = was_begun(folder)
        self.problems = _kept(folder / PROBLEMS) if begun else self._found(config.data.problems)
        self.held_out = _kept(folder / HELD_OUT) if begun else self._found(config.data.held_out)
        _refuse_shared(self.problems, self.held_out)
        self.contexts = self._contexts(begun=begun)
        events = list(read_events(folder)) if begun else []
        past = EventHistory(events)
        if isinstance(self.world, BookWorld):
            self.world.recall(turns_of(events), [*self.problems, *self.held_out])
        self.steps = past.steps
        """Metrics of each batch in the log, by batch and step."""
        self.log = EventLog(folder)
        if not begun:
            self._begin()
        self._rollouts = Rollouts(
            folder,
            self.world,
            [*self.problems, *self.held_out],
            self.log,
            past,
            config=config,
        )
        known = [turn for turn in turns_of(events) if batch_of(turn).startswith(STEP)]
        checks = config.settings.reward.checks
        self._earlier = EarlierBatches(
            self.preset, config.seed, self.contexts, known, checks=checks
        )

    def play(self, step: int, sampler: Sampler, shown: ShownTurns = all_turns) -> RolloutBatch:
        """Return the rollout batch of a step, from 0, as recorded or newly sampled."""
        section, stored = self.preset.sampling, self.contexts
        names = stored.names() or [problem.id for problem in self.problems]
        drawn = drawn_problems(names, section.prompts, step, self.config.seed)
        problems = [stored.by_id[name].problem if stored.by_id else name for name in drawn]
        first, batch = step * section.prompts * section.rollouts, f"{STEP}{step:05}"
        trajectories = trajectories_of(
            batch, problems, section.rollouts, first, drawn if stored.by_id else ()
        )
        trajectories, contexts = self._earlier.with_exemplars(trajectories)
        form: Form = "conversation" if contexts is stored else "exemplars"
        played = self._rollouts.play(
            trajectories, section.turns, sampler, section, shown, contexts, form
        )
        played = replace(played, earlier=self._earlier.rewards(batch, problems))
        self._earlier.add(played)
        return played

    def score(self, steps: int, sampler: Sampler) -> RolloutBatch:
        """Return a batch of the held-out problems after so many steps; there must be some."""
        section, sampled = self.preset.evaluation, self.preset.sampling
        names = [problem.id for problem in self.held_out]
        first = FIRST_SCORED + steps * len(names) * section.samples
        trajectories = trajectories_of(f"{SCORE}{steps:05}", names, section.samples, first)
        capacity = min(section.context_tokens, sampled.context_tokens)
        changes = {"temperature": section.temperature, "top_k": 0, "top_p": section.top_p}
        sampling = sampled.model_copy(update={**changes, "context_tokens": capacity})
        return self._rollouts.play(trajectories, section.turns, sampler, sampling)

    def record(self, step: int, played: RolloutBatch, metrics: dict[str, float | None]) -> None:
        """Write the metrics of a batch into the event log, unless an earlier session did.

        A resumed run repeats the steps after its last checkpoint, with the same batches.
        """
        batch = played.trajectories[0].batch
        if (batch, step) not in self.steps:
            self.steps[batch, step] = metrics
            self.log.append(Stepped(step=step, batch=batch, figures=metrics))

    def record_log_ratios(self, played: RolloutBatch, log_ratios: Tensor) -> None:
        """Write the trainer's log-probabilities minus the sampler's, floating (B, T, L)."""
        path = log_ratio_file(self.folder, played.trajectories[0].batch)
        if path.exists():
            return
        rows = {
            turn.ask.id: log_ratios[b, t, : len(sample.reply)]
            for b, samples in enumerate(played.samples)
            for t, sample in enumerate(samples)
            if sample is not None and (turn := played.turns[b][t]) is not None
        }
        write_log_ratios(path, rows)

    def trained(self, step: int) -> list[dict[str, float | None]]:
        """Return the metrics of the batches that were trained on up to a step, in order."""
        found = {
            at: figures for (batch, at), figures in self.steps.items() if batch.startswith(STEP)
        }
        return [found[at] for at in sorted(found) if at <= step]

    def best_scored(self, step: int) -> int | None:
        """Return the step up to this one with the best held-out reward, the earliest of equals."""
        rewards = {
            at: reward
            for (batch, at), figures in self.steps.items()
            if batch.startswith(SCORE) and at <= step and (reward := figures["reward"]) is not None
        }
        return max(sorted(rewards), key=rewards.__getitem__, default=None)

    def close(self) -> None:
        """Release the world and the log."""
        self.world.close()
        self.log.close()

    def _found(self, address: str) -> list[Problem]:
        return self.world.problems(address) if address else []

    def _contexts(self, *, begun: bool) -> Contexts:
        """Return the stored contexts, as the run was begun with them."""
        if begun:
            return contexts_of_run(self.folder)
        if not self.config.data.contexts:
            return NO_CONTEXTS
        found, known = read_contexts(Path(self.config.data.contexts)), set(_ids(self.problems))
        for item in found.by_id.values():
            if item.problem not in known:
                raise ConfigError(
                    f"data.contexts: {item.id} is about {item.problem}, which is not among "
                    f"data.problems ({self.config.data.problems})"
                )
        return found

    def _begin(self) -> None:
        with writing(self.folder):
            for name, problems in ((PROBLEMS, self.problems), (HELD_OUT, self.held_out)):
                lines = "".join(f"{problem.to_json()}\n" for problem in problems)
                (self.folder / name).write_text(lines, encoding="utf-8")
        if self.contexts.by_id:
            write_contexts(self.folder / CONTEXTS, self.contexts.by_id.values())
        self.log.append(
            RunStarted(
                kind="train",
                name=self.preset.name,
                problems=self.config.data.problems,
                protocols=(self.config.settings.eval.protocol,),
                language=self.config.settings.loop.language,
                evaluator=__version__,
                device=self.world.device,
            )
        )


def held_out_count(folder: Path) -> int:
    """Return the number of held-out problems of a run that was begun."""
    return len(_kept(folder / HELD_OUT))


def find_training_problems(config: TrainConfig) -> None:
    """Refuse addresses of problems that a run cannot train on, or score.

    Raises:
        ConfigError: a held-out problem is a training problem.
        ProblemError: an address names no problem.
    """
    addresses = [config.data.problems, config.data.held_out]
    found = problems_at(config.world, config.settings, [name for name in addresses if name])
    by_address = dict(zip(filter(None, addresses), found, strict=True))
    _refuse_shared(*(by_address.get(name, []) for name in addresses))


def _ids(problems: Sequence[Problem]) -> list[str]:
    return [problem.id for problem in problems]


def _kept(path: Path) -> list[Problem]:
    return [Problem.from_json(line) for line in lines_of(path)] if path.exists() else []


def _refuse_shared(problems: Sequence[Problem], held_out: Sequence[Problem]) -> None:
    if not problems:
        raise RecordError("there is no problem to train on")
    sources = {problem.source.text.strip(): problem.id for problem in problems}
    for problem in held_out:
        if (other := sources.get(problem.source.text.strip())) is not None:
            raise ConfigError(
                f"data.held_out has {problem.id}, whose reference is that of {other}, which is a "
                "training problem: a score on it would show nothing"
            )
