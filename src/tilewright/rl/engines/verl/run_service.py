"""The run of a training, as an actor of Ray: problems, prompts, verdicts, event log, metrics.

One actor exists. Agent loops bring it the replies, and the trainer fetches batches from it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright.rl.engines.verl.prompt_exchange import PromptExchange, SamplingRequest
from tilewright.rl.logged_rewards import rewards_by_request
from tilewright.rl.rollouts import RolloutBatch
from tilewright.rl.tokens import TokenSample
from tilewright.rl.training_config import load_training
from tilewright.rl.training_metrics import TrainedStep, Values
from tilewright.rl.training_run import TrainingRun
from tilewright.rl.training_session import TrainingSession

Batch = tuple[RolloutBatch, dict[str, float]]
"""A batch that was played, and the reward of each judged turn by its request."""
TRAINED, SCORED = "trained", "scored"
"""Kinds of batches: those of a step, and those of held-out problems after a step."""


@dataclass(frozen=True)
class PlayedTurn:
    """One turn of a trajectory, as an agent loop returns it to verl."""

    trajectory: int
    turn: int
    sample: TokenSample
    reward: float | None
    """`None`: the turn is unjudged."""


class RunService:
    """The run and its batches. Lifetime: one session of a run."""

    def __init__(self, folder: str) -> None:
        from transformers import AutoTokenizer, GenerationConfig

        config = load_training(Path(folder) / "run.yaml", recorded=True)
        self._notes: deque[str] = deque()
        self._phase: tuple[int, int, str] | None = None
        self._run = TrainingRun(config, Path(folder), lambda *_: None)
        self._session = TrainingSession(self._run, self._notes.append, self._reach)
        path = config.model.path
        self._tokenizer: Any = AutoTokenizer.from_pretrained(path)
        ends = GenerationConfig.from_pretrained(path).eos_token_id
        listed = ends if isinstance(ends, list) else [ends]
        self._ends = frozenset({*listed, self._tokenizer.eos_token_id} - {None})
        self._name = f"local:{path}"
        self._exchange: PromptExchange | None = None
        self._playing: dict[tuple[str, int], asyncio.Task[Batch]] = {}

    async def play(self, kind: str, step: int) -> RolloutBatch:
        """Return a batch, once it is judged; a second call returns the same batch.

        `step` is the number of finished steps.
        """
        return (await asyncio.shield(self._batch(kind, step)))[0]

    async def next_prompt(
        self, kind: str, step: int, number: int
    ) -> SamplingRequest | list[PlayedTurn]:
        """Return the next prompt of a trajectory's loop, or all its turns at the end of a batch."""
        batch = self._batch(kind, step)
        if (found := await self._prompts().next_prompt(number)) is not None:
            return found
        played, rewards = await asyncio.shield(batch)
        return _turns(played, rewards, number)

    async def bring(self, ticket: int, reply: list[int], logprobs: list[float]) -> None:
        """Take the reply to a prompt."""
        self._prompts().bring(ticket, reply, logprobs)

    async def fail(self, ticket: int, reason: str) -> None:
        """Take the failure of an agent loop."""
        self._prompts().fail(ticket, reason)

    async def observe(self, step: int, data: TrainedStep, logs: dict[str, float]) -> Values:
        """Record the metrics of a step, from 1, and return them."""
        return await asyncio.to_thread(self._session.observe, step, data, logs)

    async def progress(self) -> tuple[list[str], tuple[int, int, str] | None]:
        """Return the lines since the last call, and the finished steps, all steps and the phase."""
        lines = [self._notes.popleft() for _ in range(len(self._notes))]
        return lines, self._phase

    async def summary(self) -> dict[str, Any]:
        """Return the metrics of the last step and of the last score."""
        return {"last": self._session.last, "held_out": self._session.held_out}

    async def close(self) -> None:
        """Release the judge and the log."""
        await asyncio.to_thread(self._run.close)

    def _reach(self, done: int, steps: int, phase: str) -> None:
        self._phase = done, steps, phase

    def _prompts(self) -> PromptExchange:
        if self._exchange is None:
            events = asyncio.get_running_loop()
            self._exchange = PromptExchange(self._name, self._tokenizer, self._ends, events)
            self._session.sampler = self._exchange
        return self._exchange

    def _batch(self, kind: str, step: int) -> asyncio.Task[Batch]:
        if (kind, step) not in self._playing:
            self._playing = {(kind, step): asyncio.create_task(self._play(kind, step))}
        return self._playing[kind, step]

    async def _play(self, kind: str, step: int) -> Batch:
        exchange, session = self._prompts(), self._session
        play = session.play if kind == TRAINED else session.play_held_out
        try:
            played = await asyncio.to_thread(play, step)
        finally:
            exchange.end(self._loops(kind))
        turns = [turn for row in played.turns for turn in row if turn is not None]
        section, checks = self._run.preset.reward, self._run.config.settings.reward.checks
        return played, rewards_by_request(turns, section, checks=checks, stored=played.stored)

    def _loops(self, kind: str) -> int:
        preset = self._run.preset
        if kind == TRAINED:
            return preset.sampling.prompts * preset.sampling.rollouts
        return len(self._run.held_out) * preset.evaluation.samples


def _turns(played: RolloutBatch, rewards: Mapping[str, float], number: int) -> list[PlayedTurn]:
    pairs = enumerate(zip(played.turns[number], played.samples[number], strict=True))
    return [
        PlayedTurn(number, place, sample, rewards.get(turn.ask.id))
        for place, (turn, sample) in pairs
        if turn is not None and sample is not None
    ]
