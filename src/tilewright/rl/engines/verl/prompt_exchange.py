"""The prompts of a batch, handed from the thread that plays it to the agent loops of verl.

The rollouts of a run are one thread that samples all prompts of a turn together. In verl, agent
loops in other processes sample. A loop asks for its next prompt, samples it, and brings the reply.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from tilewright.errors import PolicyError
from tilewright.loop.policies.base import Message
from tilewright.rl.presets import SamplingSection
from tilewright.rl.tokens import TokenSample, decode_reply, encode_chat


@dataclass(frozen=True)
class SamplingRequest:
    """A prompt that an agent loop samples; `ticket` names it in the answer."""

    ticket: int
    ids: tuple[int, ...]
    reply_tokens: int
    """Most tokens of the reply."""
    sampling: dict[str, float]
    """Temperature, top_p and top_k, as verl's servers name them."""


@dataclass
class PromptExchange:
    """A `Sampler` whose prompts agent loops sample. Lifetime: one session of a run.

    `sample` is called by the thread that plays a batch, and everything else in the event loop
    `events` of the process.
    """

    name: str
    tokenizer: Any
    ends: frozenset[int]
    """Tokens that end a reply."""
    events: asyncio.AbstractEventLoop
    _queues: dict[int, asyncio.Queue[SamplingRequest | None]] = field(default_factory=dict)
    _open: dict[int, tuple[tuple[int, ...], Future[TokenSample]]] = field(default_factory=dict)
    _tickets: itertools.count[int] = field(default_factory=itertools.count)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def encode(self, messages: Sequence[Message]) -> list[int]:
        return encode_chat(self.tokenizer, messages)

    def decode(self, reply: Sequence[int]) -> str:
        return decode_reply(self.tokenizer, reply)

    def sample(
        self,
        prompts: Sequence[Sequence[int]],
        seed: str,  # noqa: ARG002 - the servers of verl have one of their own
        sampling: SamplingSection,
    ) -> list[TokenSample]:
        """Return the replies that the agent loops bring, in the order of the prompts.

        Raises:
            PolicyError: a loop could not sample a prompt.
        """
        cut = {"temperature": sampling.temperature, "top_p": sampling.top_p}
        params = cut | {"top_k": sampling.top_k or -1}
        futures = []
        for number, ids in enumerate(prompts):
            ticket, future = next(self._tickets), Future[TokenSample]()
            with self._lock:
                self._open[ticket] = tuple(ids), future
            prompt = SamplingRequest(ticket, tuple(ids), sampling.reply_tokens, params)
            self.events.call_soon_threadsafe(self._queue(number).put_nowait, prompt)
            futures.append(future)
        return [future.result() for future in futures]

    async def next_prompt(self, number: int) -> SamplingRequest | None:
        """Return the next prompt of the loop of a number; `None`: the batch is complete."""
        return await self._queue(number).get()

    def bring(self, ticket: int, reply: Sequence[int], logprobs: Sequence[float]) -> None:
        """Take the sampled reply to a prompt, with its end token."""
        ids, future = self._taken(ticket)
        if not reply or len(logprobs) != len(reply):
            found = f"{len(reply)} tokens and {len(logprobs)} log-probabilities"
            future.set_exception(PolicyError(f"sampling from {self.name}: a reply has {found}"))
            return
        finish = "stop" if reply[-1] in self.ends else "length"
        future.set_result(TokenSample(ids, tuple(reply), tuple(logprobs), finish))

    def fail(self, ticket: int, reason: str) -> None:
        """Take the failure of a loop, which ends the batch."""
        error = PolicyError(f"sampling from {self.name}: {reason}")
        self._taken(ticket)[1].set_exception(error)

    def end(self, loops: int) -> None:
        """Tell so many loops that the batch is complete."""
        for number in range(loops):
            self._queue(number).put_nowait(None)

    def _queue(self, number: int) -> asyncio.Queue[SamplingRequest | None]:
        with self._lock:
            return self._queues.setdefault(number, asyncio.Queue())

    def _taken(self, ticket: int) -> tuple[tuple[int, ...], Future[TokenSample]]:
        with self._lock:
            return self._open.pop(ticket)
