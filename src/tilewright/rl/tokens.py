"""The token ids that a sampler read and wrote, in files next to the event log.

Text that is tokenised again may give other ids, and a gradient for tokens that nothing sampled.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch

from tilewright.errors import RecordError, writing
from tilewright.loop.policies.base import Message
from tilewright.rl.presets import SamplingSection


@dataclass(frozen=True, slots=True)
class TokenSample:
    """The tokens that a model read and wrote, the end token included.

    `logprobs` are the sampler's natural log-probabilities of the reply. `finish` is `stop` or
    `length`.
    """

    prompt: tuple[int, ...]
    reply: tuple[int, ...]
    logprobs: tuple[float, ...]
    finish: str


class Sampler(Protocol):
    """An engine's sampler, with the current weights."""

    name: str

    def encode(self, messages: Sequence[Message]) -> list[int]:
        """Return the token ids of a prompt, with its chat template."""

    def decode(self, reply: Sequence[int]) -> str:
        """Return the text of a reply."""

    def sample(
        self, prompts: Sequence[Sequence[int]], seed: str, sampling: SamplingSection
    ) -> list[TokenSample]:
        """Return a reply to each prompt, which depends on prompts, weights and seed alone."""


def write_samples(path: Path, samples: dict[str, TokenSample]) -> None:
    """Write samples by the id of their request: the whole file or nothing."""
    from safetensors.torch import save

    rows = list(samples.values())
    tensors = {
        "prompt": torch.tensor([t for row in rows for t in row.prompt], dtype=torch.int32),
        "reply": torch.tensor([t for row in rows for t in row.reply], dtype=torch.int32),
        "logprobs": torch.tensor([v for row in rows for v in row.logprobs], dtype=torch.float32),
        "lengths": torch.tensor([[len(row.prompt), len(row.reply)] for row in rows]).reshape(-1, 2),
    }
    names = {"asks": json.dumps(list(samples)), "finish": json.dumps([r.finish for r in rows])}
    fresh = path.with_suffix(".new")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(fresh, "wb") as file:
            file.write(save(tensors, metadata=names))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)


def read_samples(path: Path) -> dict[str, TokenSample]:
    """Return the samples in a file, by the id of their request."""
    from safetensors import safe_open

    try:
        with safe_open(path, framework="pt") as file:
            names = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        asks, finish = json.loads(names["asks"]), json.loads(names["finish"])
        prompts, replies = tensors["lengths"].T.tolist()
        lengths = {"prompt": prompts, "reply": replies, "logprobs": replies}
        parts = [tensors[name].split(sizes) for name, sizes in lengths.items()]
    except Exception as error:
        # The package raises a different exception for each kind of damage.
        raise RecordError(f"{path}: no samples can be read: {error}") from error
    return {
        ask: TokenSample(tuple(prompt.tolist()), tuple(reply.tolist()), tuple(probs.tolist()), end)
        for ask, end, prompt, reply, probs in zip(asks, finish, *parts, strict=True)
    }
