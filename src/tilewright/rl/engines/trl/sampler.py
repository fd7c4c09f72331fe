"""Sampling with transformers, from the current weights of a training."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
import transformers

from tilewright.errors import PolicyError, boundary
from tilewright.loop.policies.base import Message
from tilewright.loop.policies.local_model import LogprobRecorder, OnWait, leased
from tilewright.rl.presets import SamplingSection
from tilewright.rl.tokens import TokenSample, decode_reply, encode_chat
from tilewright.rl.training_config import MachineSection

Precision = Callable[[], AbstractContextManager[Any]]
"""Returns a context in which the model computes in the precision of sampling."""


def sampling_precision(machine: MachineSection, model: Any, updates: Precision) -> Precision:  # noqa: ANN401
    """Return the precision of sampling; `updates` is that of the trainer, which wraps `model`."""
    if machine.sampler_precision in (None, machine.precision):
        return updates
    if machine.sampler_precision == "bf16":
        return lambda: torch.autocast(model.device.type, torch.bfloat16)

    @contextmanager
    def whole() -> Iterator[None]:
        # accelerate replaces `forward` by one in bf16, and keeps the former one.
        wrapped = model.forward
        model.forward = model._original_forward
        try:
            yield
        finally:
            model.forward = wrapped

    return whole


@dataclass
class TransformersSampler:
    """A `Sampler` that samples batches of prompts with `generate`. Lifetime: one session."""

    model: Any
    tokenizer: Any
    batch_size: int
    lease: str | None
    precision: Precision
    name: str
    on_wait: OnWait = lambda _: None

    @cached_property
    def _ends(self) -> list[int]:
        ends = self.model.generation_config.eos_token_id
        listed = ends if isinstance(ends, list) else [ends]
        return sorted({*listed, self.tokenizer.eos_token_id} - {None})

    def encode(self, messages: Sequence[Message]) -> list[int]:
        return encode_chat(self.tokenizer, messages)

    def decode(self, reply: Sequence[int]) -> str:
        return decode_reply(self.tokenizer, reply)

    def sample(
        self, prompts: Sequence[Sequence[int]], seed: str, sampling: SamplingSection
    ) -> list[TokenSample]:
        # Prompts of similar length share a batch, which needs less padding.
        order = sorted(range(len(prompts)), key=lambda place: (len(prompts[place]), place))
        found: dict[int, TokenSample] = {}
        training = self.model.training
        self.model.eval()
        devices = [] if self.model.device.type == "cpu" else [self.model.device]
        try:
            with (
                boundary(PolicyError, f"sampling from {self.name}"),
                leased(self.lease, self.on_wait),
                torch.random.fork_rng(devices=devices),
                self.precision(),
            ):
                for start in range(0, len(order), self.batch_size):
                    chosen = order[start : start + self.batch_size]
                    # The seed is independent of all earlier sampling.
                    digest = hashlib.blake2b(f"{seed}/{start}".encode(), digest_size=7).digest()
                    torch.manual_seed(int.from_bytes(digest, "big"))
                    sampled = self._drawn([prompts[place] for place in chosen], sampling)
                    found |= dict(zip(chosen, sampled, strict=True))
        finally:
            self.model.train(training)
            if devices:
                # Evaluations on this device run in other processes and need the memory.
                torch.cuda.empty_cache()
        return [found[place] for place in range(len(prompts))]

    def _drawn(self, prompts: list[Sequence[int]], sampling: SamplingSection) -> list[TokenSample]:
        longest = max(map(len, prompts))
        pad = self.tokenizer.pad_token_id
        ids = [[pad] * (longest - len(row)) + list(row) for row in prompts]
        seen = [[0] * (longest - len(row)) + [1] * len(row) for row in prompts]
        device = self.model.device
        recorder = LogprobRecorder(sampling.temperature)
        sequences = self.model.generate(
            input_ids=torch.tensor(ids, device=device),
            attention_mask=torch.tensor(seen, device=device),
            generation_config=self._generation(sampling),
            logits_processor=[recorder],
        )
        scores = recorder.logprobs(sequences)
        return [
            self._cut(prompt, row[longest:].tolist(), probs)
            for prompt, row, probs in zip(prompts, sequences, scores, strict=True)
        ]

    def _generation(self, sampling: SamplingSection) -> Any:  # noqa: ANN401 - untyped package
        greedy = sampling.temperature == 0
        chosen = sampling.model_dump(include={"temperature", "top_k", "top_p"})
        # It names every setting that a model's own defaults would otherwise change.
        return transformers.GenerationConfig(
            max_new_tokens=sampling.reply_tokens,
            do_sample=not greedy,
            repetition_penalty=1.0,
            no_repeat_ngram_size=0,
            eos_token_id=self._ends,
            pad_token_id=self.tokenizer.pad_token_id,
            **({} if greedy else chosen),
        )

    def _cut(self, prompt: Sequence[int], reply: list[int], logprobs: list[float]) -> TokenSample:
        stop = next((place for place, token in enumerate(reply) if token in self._ends), None)
        count = len(reply) if stop is None else stop + 1
        finish = "length" if stop is None else "stop"
        return TokenSample(tuple(prompt), tuple(reply[:count]), tuple(logprobs[:count]), finish)
