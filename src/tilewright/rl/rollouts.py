"""Playing rollout batches: the one driver, with an engine's sampler as its policy.

What is sampled is on the disk before any of it is judged, and what is judged before it is trained
on. A batch that a kill cut off is played to its end from there: nothing is sampled or judged twice.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tilewright.errors import ConfigError, InfrastructureError, RecordError
from tilewright.loop.budget import Usage
from tilewright.loop.driver import drive, replay
from tilewright.loop.policies.base import Message
from tilewright.loop.rollout import RecordedHistory, RolloutWorker
from tilewright.records import Problem
from tilewright.records.event_log import EventLog
from tilewright.records.events import (
    Ask,
    Reply,
    RequestsIssued,
    RunStarted,
    Stepped,
    Turn,
    TurnFinished,
)
from tilewright.rl.tokens import Sample, Sampler, Sampling, read_samples, write_samples
from tilewright.rl.training_config import TrainConfig
from tilewright.rl.trajectories import LockstepStrategy, Trajectory
from tilewright.rl.worlds import World

__all__ = ["EventHistory", "RolloutBatch", "Rollouts", "batch_of", "is_unjudged"]

FOLDER = "rollouts"
Event = RunStarted | RequestsIssued | TurnFinished | Stepped


@dataclass(frozen=True)
class RolloutBatch:
    """A rollout batch as it was played: B trajectories of at most T turns."""

    trajectories: tuple[Trajectory, ...]
    turns: tuple[tuple[Turn | None, ...], ...]
    """(B, T); `None` where there was no room for a turn."""
    samples: tuple[tuple[Sample | None, ...], ...]
    """(B, T), of the same places."""


def batch_of(ask: Ask) -> str:
    """Return the batch that an ask belongs to."""
    return ask.id.partition("/")[0]


def is_unjudged(turn: Turn) -> bool:
    """Tell whether a turn says nothing of its reply."""
    return not turn.judgements or turn.judgements[0].verdict == "unjudged"


@dataclass
class EventHistory:
    """What earlier sittings left in the event log, by batch."""

    events: dict[str, list[Event]] = field(default_factory=lambda: defaultdict(list))

    @classmethod
    def of(cls, events: Iterable[Event]) -> EventHistory:
        """Sort the events of a log by batch."""
        found = cls()
        for event in events:
            if isinstance(event, RequestsIssued):
                found.events[batch_of(event.asks[0])].append(event)
            elif isinstance(event, TurnFinished):
                found.events[batch_of(event.turn.ask)].append(event)
        return found

    def settled(self, batch: str, most_unjudged: float) -> list[Event]:
        """Return what counts of a batch, in order.

        Where more turns than may be could not be judged, the run ended for it; those that its last
        prompts did not show yet are judged now.
        """
        events = self.events.pop(batch, [])
        last = {
            e.turn.ask.id: place for place, e in enumerate(events) if isinstance(e, TurnFinished)
        }
        events = [
            event
            for place, event in enumerate(events)
            if not isinstance(event, TurnFinished) or last[event.turn.ask.id] == place
        ]
        lost = [e.turn.ask for e in events if isinstance(e, TurnFinished) and is_unjudged(e.turn)]
        if len(lost) <= most_unjudged:
            return events
        newest = max(ask.turn for e in events if isinstance(e, RequestsIssued) for ask in e.asks)
        again = {ask.id for ask in lost if ask.turn == newest}
        return [e for e in events if not isinstance(e, TurnFinished) or e.turn.ask.id not in again]


class BatchPolicy:
    """The policy of a batch: all prompts of a turn are answered together. Lifetime: one batch."""

    def __init__(
        self, path: Path, sampler: Sampler, sampling: Sampling, seed: str, prompts: Prompts
    ) -> None:
        self.name = sampler.name
        self._path = path
        self._sampler = sampler
        self._sampling = sampling
        self._seed = seed
        self._prompts = prompts
        self._lock = threading.Lock()
        self._levels: set[int] = set()
        self.samples: dict[str, Sample] = {}
        """By ask, of the turns that were sampled or read."""

    def answer(self, messages: Sequence[Message], ask: Ask) -> Reply:  # noqa: ARG002 - one signature
        """Return what was sampled for an ask, with that of all others of its turn."""
        self.have(ask.turn)
        sample = self.samples[ask.id]
        return Reply(
            text=self._sampler.decode(sample.reply),
            model=self.name,
            prompt_tokens=len(sample.prompt),
            reply_tokens=len(sample.reply),
            finish=sample.finish,
        )

    def max_cost(self, prompt_tokens: int) -> Usage:
        """Return what a reply uses at most."""
        return Usage(tokens=prompt_tokens + self._sampling.reply_tokens)

    def close(self) -> None:
        """Do nothing: the engine owns the model."""

    def have(self, turn: int) -> None:
        """Sample all replies of a turn, unless they are on the disk.

        Raises:
            RecordError: the file of them is damaged or lost, or holds others.
        """
        with self._lock:
            if turn in self._levels:
                return
            path = self._path.with_name(f"{self._path.name}.{turn}.safetensors")
            prompts = self._prompts(turn)
            if path.exists():
                found = read_samples(path)
                if list(found) != [ask.id for ask in prompts.asks]:
                    raise RecordError(f"{path} holds the samples of other asks")
            elif prompts.told:
                raise RecordError(f"{path} is gone: what was judged cannot be learned from")
            else:
                encoded = [self._sampler.encode(item) for item in prompts.messages()]
                seed = f"{self._seed}/{self._path.name}/{turn}"
                drawn = self._sampler.sample(encoded, seed, self._sampling)
                found = {ask.id: item for ask, item in zip(prompts.asks, drawn, strict=True)}
                write_samples(path, found)
            self.samples |= found
            self._levels.add(turn)


class Rollouts:
    """Plays the rollout batches of a run. Lifetime: one sitting."""

    def __init__(
        self,
        folder: Path,
        world: World,
        problems: Sequence[Problem],
        log: EventLog,
        past: EventHistory,
        *,
        config: TrainConfig,
    ) -> None:
        self._folder = folder
        self._world = world
        self._problems = {problem.id: problem for problem in problems}
        self._log = log
        self._past = past
        self._seed = str(config.seed)
        self._max_concurrency = config.settings.loop.max_concurrency
        self._stop_unjudged = config.health.stop_unjudged

    def play(
        self,
        trajectories: Sequence[Trajectory],
        turns: int,
        sampler: Sampler,
        sampling: Sampling,
    ) -> RolloutBatch:
        """Play a batch to its end, from wherever it stands in the log.

        Raises:
            InfrastructureError: the judge fails; what it did judge is in the log.
            ConfigError: the run folder cannot be written, or no prompt has room for a reply.
            RecordError: what is left of an earlier sitting is damaged.
        """
        batch = trajectories[0].batch
        told: dict[str, Turn] = {}

        def room(problem: str, earlier: Sequence[str]) -> Sequence[str] | None:
            return self._room(sampler, sampling, problem, [told[name] for name in earlier])

        strategy = LockstepStrategy(trajectories, turns, room)
        history = RecordedHistory(strategy)
        told = history.turns

        def prompts(turn: int) -> TurnBatch:
            return TurnBatch(strategy.levels[turn], told, self._world, self._problems)

        policy = BatchPolicy(self._folder / FOLDER / batch, sampler, sampling, self._seed, prompts)
        planned = len(trajectories) * turns
        most = self._stop_unjudged * planned
        playing = drive(
            history,
            RolloutWorker(self._world, policy, self._problems, told).play,
            self._log,
            max_concurrency=self._max_concurrency,
            waiting=replay(history, self._past.settled(batch, most)),
            stop=self._world.stop,
        )
        for _ in playing:
            lost = [turn for turn in told.values() if is_unjudged(turn)]
            if len(lost) > most:
                playing.close()
                raise _too_many(lost, planned)
        if not told:
            raise ConfigError(
                f"no prompt of {batch} leaves room for a reply: sampling.reply_tokens is "
                f"{sampling.reply_tokens}, sampling.context_tokens {sampling.context_tokens}"
            )
        for turn, asks in enumerate(strategy.levels):
            if asks:
                policy.have(turn)
        return _played(trajectories, turns, told, policy.samples)

    def _room(
        self, sampler: Sampler, sampling: Sampling, problem: str, earlier: Sequence[Turn]
    ) -> Sequence[str] | None:
        """Return the newest turns that a prompt has room for; `None`: not even for the last."""
        for first in range(max(len(earlier), 1)):
            messages = self._world.prompt(self._problems[problem], earlier[first:])
            if len(sampler.encode(messages)) + sampling.reply_tokens <= sampling.context_tokens:
                return [turn.ask.id for turn in earlier[first:]]
        return None


@dataclass(frozen=True)
class TurnBatch:
    """One turn of all trajectories of a batch."""

    asks: Sequence[Ask]
    turns: Mapping[str, Turn]
    """What was told so far."""
    world: World
    problems: Mapping[str, Problem]

    @property
    def told(self) -> bool:
        """Whether some of it was told."""
        return any(ask.id in self.turns for ask in self.asks)

    def messages(self) -> list[tuple[Message, ...]]:
        """Return the prompts, in the order of asks."""
        return [
            self.world.prompt(
                self.problems[ask.problem], [self.turns[name] for name in ask.shown_turns]
            )
            for ask in self.asks
        ]


Prompts = Callable[[int], TurnBatch]


def _too_many(lost: Sequence[Turn], planned: int) -> InfrastructureError:
    reasons = Counter(turn.judgements[0].reason[:200] for turn in lost if turn.judgements)
    reason, times = (reasons.most_common(1) or [("no reason given", 0)])[0]
    return InfrastructureError(
        f"{len(lost)} of {planned} turns of a batch could not be judged, more than "
        f"health.stop_unjudged allows; {times} of them: {reason}. Nothing is lost: repair the "
        "judge and resume the run"
    )


def _played(
    trajectories: Sequence[Trajectory],
    turns: int,
    told: Mapping[str, Turn],
    samples: Mapping[str, Sample],
) -> RolloutBatch:
    names = [[item.ask_id(turn) for turn in range(turns)] for item in trajectories]
    return RolloutBatch(
        tuple(trajectories),
        tuple(tuple(told.get(name) for name in row) for row in names),
        tuple(tuple(samples.get(name) for name in row) for row in names),
    )
