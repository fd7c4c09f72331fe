"""The run of a training, as an actor of Ray: problems, prompts, verdicts, event log, metrics.

One actor exists. Agent loops bring it the replies, and the trainer fetches batches from it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
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
LAST_LINES_S = 3.0
"""Seconds in which the command fetches the last lines; verl's own command fetches none."""
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
        self._folder = Path(folder)
        self._notes: deque[str] = deque()
        self._phase: tuple[int, int, str] | None = None
        self._opened: TrainingRun | None = None
        self._playing: dict[tuple[str, int], asyncio.Task[Batch]] = {}

    async def open(self) -> None:
        """Open the run folder, the judge and the tokenizer.

        Raises:
            TilewrightError: one of them cannot be used.
        """
        await asyncio.to_thread(self._open, asyncio.get_running_loop())

    def _open(self, events: asyncio.AbstractEventLoop) -> None:
        from transformers import AutoTokenizer, GenerationConfig

        config = load_training(self._folder / "run.yaml", recorded=True)
        path = config.model.path
        tokenizer: Any = AutoTokenizer.from_pretrained(path)
        ends = GenerationConfig.from_pretrained(path).eos_token_id
        listed = ends if isinstance(ends, list) else [ends]
        known = frozenset({*listed, tokenizer.eos_token_id} - {None})
        self._exchange = PromptExchange(f"local:{path}", tokenizer, known, events)
        self._run = self._opened = TrainingRun(config, self._folder, lambda *_: None)
        self._session = TrainingSession(self._run, self._notes.append, self._reach)
        self._session.sampler = self._exchange

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
        if (found := await self._exchange.next_prompt(number)) is not None:
            return found
        played, rewards = await asyncio.shield(batch)
        return _turns(played, rewards, number)

    async def bring(self, ticket: int, reply: list[int], logprobs: list[float]) -> None:
        """Take the reply to a prompt."""
        self._exchange.bring(ticket, reply, logprobs)

    async def fail(self, ticket: int, reason: str) -> None:
        """Take the failure of an agent loop."""
        self._exchange.fail(ticket, reason)

    async def observe(self, step: int, data: TrainedStep, logs: dict[str, float]) -> Values:
        """Record the metrics of a step, from 1, and return them."""
        return await asyncio.to_thread(self._session.observe, step, data, logs)

    async def progress(self) -> tuple[list[str], tuple[int, int, str] | None]:
        """Return the lines since the last call, and the finished steps, all steps and the phase."""
        lines = [self._notes.popleft() for _ in range(len(self._notes))]
        return lines, self._phase

    async def close(self) -> None:
        """Release the judge and the log, after the last lines were fetched."""
        if self._opened is not None:
            await asyncio.to_thread(self._opened.close)
            self._opened = None
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_LINES_S):
                while self._notes:
                    await asyncio.sleep(0.1)

    def _reach(self, done: int, steps: int, phase: str) -> None:
        self._phase = done, steps, phase

    def _batch(self, kind: str, step: int) -> asyncio.Task[Batch]:
        if (kind, step) not in self._playing:
            self._playing = {(kind, step): asyncio.create_task(self._play(kind, step))}
        return self._playing[kind, step]

    async def _play(self, kind: str, step: int) -> Batch:
        exchange, session = self._exchange, self._session
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
