"""Sampling of rollout batches with the driver of search, and an engine's sampler as the policy.

The engine writes every sample to the disk before a judge sees it, and the driver writes every
verdict before the trainer uses it. So a batch that a kill interrupted continues where it stopped,
without a second sample or evaluation of any turn.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from tilewright.errors import ConfigError, InfrastructureError, RecordError
from tilewright.loop.budget import Usage
from tilewright.loop.driver import drive, replay
from tilewright.loop.estimates import Estimates
from tilewright.loop.history import RecordedHistory
from tilewright.loop.policies.base import Message
from tilewright.loop.prompts.material import Material
from tilewright.loop.rollout import RolloutWorker
from tilewright.records import Problem
from tilewright.records.event_log import EventLog
from tilewright.records.events import (
    Ask,
    EvalSummary,
    Event,
    Form,
    Reply,
    RequestsIssued,
    Stepped,
    Turn,
    TurnFinished,
)
from tilewright.rl.presets import SamplingSection
from tilewright.rl.prompt_contexts import NO_CONTEXTS, Contexts
from tilewright.rl.tokens import Sampler, TokenSample, read_samples, write_samples
from tilewright.rl.training_config import TrainConfig
from tilewright.rl.training_folder import ROLLOUTS
from tilewright.rl.trajectories import LockstepStrategy, ShownTurns, Trajectory, all_turns
from tilewright.rl.worlds import World


@dataclass(frozen=True)
class RolloutBatch:
    """A finished rollout batch: B trajectories of at most T turns."""

    trajectories: tuple[Trajectory, ...]
    turns: tuple[tuple[Turn | None, ...], ...]
    """(B, T); `None` where the context had no room for a turn."""
    samples: tuple[tuple[TokenSample | None, ...], ...]
    """(B, T), in the same places."""
    stored: Mapping[str, Turn] = field(default_factory=dict)
    """Turns of stored contexts, by request."""
    earlier: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Rewards of batches before this one by problem, the oldest first, as far as smoothing needs
    them."""

    def parent_of(self, turn: Turn) -> Turn | None:
        """Return the turn that a turn was written to improve on; `None` if there is none."""
        return self._by_request.get(turn.ask.parents[-1]) if turn.ask.parents else None

    @cached_property
    def _by_request(self) -> dict[str, Turn]:
        own = {turn.ask.id: turn for row in self.turns for turn in row if turn is not None}
        return {**self.stored, **own}


def verdict_of(turn: Turn | None) -> EvalSummary | None:
    """Return the first verdict of a turn; `None` if the turn is absent or unjudged."""
    return judged(turn.judgements[0]) if turn is not None and turn.judgements else None


def judged(judgement: EvalSummary | None) -> EvalSummary | None:
    """Return a judgement that is a verdict; `None` if there is none, or it is `unjudged`."""
    return None if judgement is None or judgement.verdict == "unjudged" else judgement


class EventHistory:
    """The events that earlier sessions of a run wrote, by batch.

    `steps` are the figures of each batch that a step was trained or scored on, by batch and step.
    """

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self._events: dict[str, list[Event]] = defaultdict(list)
        self.steps: dict[tuple[str, int], dict[str, float | None]] = {}
        for event in events:
            if isinstance(event, Stepped):
                self.steps.setdefault((event.batch, event.step), event.figures)
            elif isinstance(event, RequestsIssued | TurnFinished):
                ask = event.asks[0] if isinstance(event, RequestsIssued) else event.turn.ask
                self._events[ask.id.partition("/")[0]].append(event)

    def settled(self, batch: str, most_unjudged: float) -> list[Event]:
        """Return the valid events of a batch, in order.

        The last event of a turn counts. More than `most_unjudged` unjudged turns had stopped the
        run. No prompt shows those of the newest turn yet, so they are left out and judged again.
        """
        events = self._events.pop(batch, [])
        last = {event.turn.ask.id: event for event in events if isinstance(event, TurnFinished)}
        lost = [event.turn.ask for event in last.values() if verdict_of(event.turn) is None]
        if len(lost) > most_unjudged:
            newest = max(a.turn for e in events if isinstance(e, RequestsIssued) for a in e.asks)
            again = {ask.id for ask in lost if ask.turn == newest}
            last = {name: event for name, event in last.items() if name not in again}
        return [
            event
            for event in events
            if not isinstance(event, TurnFinished) or last.get(event.turn.ask.id) is event
        ]


@dataclass(frozen=True)
class Rollouts:
    """Samples and judges the rollout batches of a run. Lifetime: one session."""

    folder: Path
    world: World
    problems: Sequence[Problem]
    log: EventLog
    past: EventHistory
    config: TrainConfig

    def play(
        self,
        trajectories: Sequence[Trajectory],
        turns: int,
        sampler: Sampler,
        sampling: SamplingSection,
        shown: ShownTurns = all_turns,
        contexts: Contexts = NO_CONTEXTS,
        form: Form = "conversation",
    ) -> RolloutBatch:
        """Return a batch of so many turns, continued from its place in the log.

        `contexts` are those that the trajectories name, and `form` is that of their prompts.

        Raises:
            InfrastructureError: the judge fails; the log keeps all verdicts until then.
            ConfigError: no prompt has room for a reply.
        """
        batch, planned = trajectories[0].batch, len(trajectories) * turns
        problems = {problem.id: problem for problem in self.problems}
        path, seed = self.folder / ROLLOUTS / batch, self.config.seed
        policy = BatchPolicy(
            sampler.name, path, sampler, sampling, seed, self.world, problems, form
        )
        strategy = LockstepStrategy(trajectories, turns, policy.room, shown, contexts.shown, form)
        history = RecordedHistory(strategy)
        stored = _stored_turns(trajectories, contexts)
        history.turns.update(stored)
        for turn in stored.values():
            history.estimates.add(turn)
        policy.finished, policy.estimates = history.turns, history.estimates
        policy.levels = strategy.levels
        most = self.config.health.stop_unjudged * planned
        playing = drive(
            history,
            RolloutWorker(self.world, policy, problems, history).play,
            self.log,
            max_concurrency=self.config.settings.loop.max_concurrency,
            waiting=replay(history, self.past.settled(batch, most)),
            stop=self.world.stop,
        )
        for _ in playing:
            lost = [turn for turn in history.turns.values() if verdict_of(turn) is None]
            if len(lost) > most:
                playing.close()
                raise _too_many(lost, planned)
        if len(history.turns) == len(stored):
            raise ConfigError(
                f"no prompt of {batch} leaves room for a reply: sampling.reply_tokens is "
                f"{sampling.reply_tokens}, sampling.context_tokens {sampling.context_tokens}"
            )
        for number in (number for number, asks in enumerate(strategy.levels) if asks):
            policy.sample_turn(number)
        names = [[item.ask_id(turn) for turn in range(turns)] for item in trajectories]
        return RolloutBatch(
            tuple(trajectories),
            tuple(tuple(map(history.turns.get, row)) for row in names),
            tuple(tuple(map(policy.samples.get, row)) for row in names),
            stored,
        )


@dataclass
class BatchPolicy:
    """The policy of a batch; it samples all replies of a turn together. Lifetime: one batch."""

    name: str
    path: Path
    sampler: Sampler
    sampling: SamplingSection
    seed: int
    world: World
    problems: Mapping[str, Problem]
    form: Form = "conversation"
    """Form of the prompts."""
    estimates: Estimates = field(default_factory=Estimates)
    """Estimates of the turns that were judged."""
    finished: Mapping[str, Turn] = field(default_factory=dict)
    """Turns that were judged, by request."""
    levels: Sequence[Sequence[Ask]] = ()
    """The requests of each turn that was begun."""
    samples: dict[str, TokenSample] = field(default_factory=dict)
    """Turns that were sampled or read, by request."""
    sampled: set[int] = field(default_factory=set)
    """Numbers of the turns whose samples are known."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, messages: Sequence[Message], ask: Ask) -> Reply:  # noqa: ARG002 - one signature
        """Return the sampled reply to a request."""
        self.sample_turn(ask.turn)
        sample = self.samples[ask.id]
        return Reply(
            text=self.sampler.decode(sample.reply),
            model=self.name,
            prompt_tokens=len(sample.prompt),
            reply_tokens=len(sample.reply),
            finish=sample.finish,
        )

    def max_cost(self, prompt_tokens: int) -> Usage:
        return Usage(tokens=prompt_tokens + self.sampling.reply_tokens)

    def close(self) -> None:
        """Do nothing: the engine owns the model."""

    def room(self, problem: str, earlier: Sequence[str]) -> list[str] | None:
        """Return the newest turns that fit into a prompt, at least one if there are earlier ones.

        `None`: not even the newest fits. Without it the prompt would be that of the first turn.
        """
        capacity = self.sampling.context_tokens - self.sampling.reply_tokens
        for first in range(max(len(earlier), 1)):
            if len(self._encoded(problem, earlier[first:])) <= capacity:
                return list(earlier[first:])
        return None

    def _encoded(self, problem: str, shown: Sequence[str]) -> list[int]:
        material = Material(
            self.problems[problem],
            form=self.form,
            shown=[self.finished[name] for name in shown],
            estimates=self.estimates.snapshot(tuple(shown)),
        )
        return self.sampler.encode(self.world.prompt(material))

    def sample_turn(self, turn: int) -> None:
        """Sample all replies of a turn, unless the disk has them."""
        with self.lock:
            if turn in self.sampled:
                return
            path = self.path.with_name(f"{self.path.name}.{turn}.safetensors")
            asks = self.levels[turn]
            names = [ask.id for ask in asks]
            if path.exists():
                found = read_samples(path)
                if list(found) != names:
                    raise RecordError(f"{path} holds the samples of other requests")
            elif any(name in self.finished for name in names):
                raise RecordError(f"{path} is missing: judged turns need it to be trained on")
            else:
                prompts = [self._encoded(ask.problem, ask.shown_turns) for ask in asks]
                seed = f"{self.seed}/{self.path.name}/{turn}"
                drawn = self.sampler.sample(prompts, seed, self.sampling)
                found = dict(zip(names, drawn, strict=True))
                write_samples(path, found)
            self.samples |= found
            self.sampled.add(turn)


def _stored_turns(trajectories: Sequence[Trajectory], contexts: Contexts) -> dict[str, Turn]:
    named = {item.context for item in trajectories if item.context}
    return {turn.ask.id: turn for name in named for turn in contexts.shown(name)}


def _too_many(lost: Sequence[Turn], planned: int) -> InfrastructureError:
    reasons = Counter(turn.judgements[0].reason[:200] for turn in lost if turn.judgements)
    reason, times = (reasons.most_common(1) or [("no reason given", 0)])[0]
    return InfrastructureError(
        f"{len(lost)} of {planned} turns of a batch could not be judged, more than "
        f"health.stop_unjudged allows; {times} of them: {reason}. Nothing is lost: repair the "
        "judge and resume the run"
    )
