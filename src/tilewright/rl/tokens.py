"""What a sampler saw and wrote, as token ids, in files beside the event log.

Rows are made of these ids alone. Text that is tokenised again may give other ids, and then the
gradient is that of something that nobody sampled.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch

from tilewright.errors import ConfigError, RecordError
from tilewright.loop.policies.base import Message

__all__ = ["Sample", "Sampler", "Sampling", "read_samples", "write_samples"]


@dataclass(frozen=True, slots=True)
class Sample:
    """One reply, in tokens."""

    prompt: tuple[int, ...]
    """What the model saw."""
    reply: tuple[int, ...]
    """What it wrote, the end of the reply included."""
    logprobs: tuple[float, ...]
    """The sampler's, of each of them; natural logarithms."""
    finish: str
    """`stop` or `length`."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How replies are drawn, all of it said: a model's own defaults would cut the distribution."""

    temperature: float
    top_k: int
    top_p: float
    context_tokens: int
    """Prompt and reply together."""
    reply_tokens: int


class Sampler(Protocol):
    """An engine's sampler, with the weights of now."""

    name: str

    def encode(self, messages: Sequence[Message]) -> list[int]:
        """Return the ids of a prompt, as the model is shown it."""

    def decode(self, reply: Sequence[int]) -> str:
        """Return the text of a reply."""

    def sample(
        self, prompts: Sequence[Sequence[int]], seed: str, sampling: Sampling
    ) -> list[Sample]:
        """Return a reply to each prompt: the same ones for the same prompts, weights and seed."""


def write_samples(path: Path, samples: dict[str, Sample]) -> None:
    """Write samples by the id of their ask: the whole file or nothing of it.

    Raises:
        ConfigError: the disk is full, or the folder is gone.
    """
    from safetensors.torch import save

    rows = list(samples.values())
    tensors = {
        "prompt": torch.tensor([t for row in rows for t in row.prompt], dtype=torch.int32),
        "reply": torch.tensor([t for row in rows for t in row.reply], dtype=torch.int32),
        "logprobs": torch.tensor([v for row in rows for v in row.logprobs], dtype=torch.float32),
        "lengths": torch.tensor(
            [[len(row.prompt), len(row.reply)] for row in rows], dtype=torch.int64
        ).reshape(-1, 2),
    }
    names = {"asks": json.dumps(list(samples)), "finish": json.dumps([r.finish for r in rows])}
    fresh = path.with_suffix(".new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(fresh, "wb") as file:
            file.write(save(tensors, metadata=names))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}") from error


def read_samples(path: Path) -> dict[str, Sample]:
    """Return what was written, by the id of its ask.

    Raises:
        RecordError: it cannot be read.
    """
    from safetensors import safe_open

    try:
        with safe_open(path, framework="pt") as file:
            names = file.metadata() or {}
            tensors = {name: file.get_tensor(name).tolist() for name in file.keys()}  # noqa: SIM118
        asks, finish = json.loads(names["asks"]), json.loads(names["finish"])
        lengths = tensors["lengths"]
    except Exception as error:
        # The package has an exception of its own for each way in which a file is damaged.
        raise RecordError(f"{path}: no samples can be read: {error}") from error
    found, at_prompt, at_reply = {}, 0, 0
    for ask, end, (prompt, reply) in zip(asks, finish, lengths, strict=True):
        found[ask] = Sample(
            tuple(tensors["prompt"][at_prompt : at_prompt + prompt]),
            tuple(tensors["reply"][at_reply : at_reply + reply]),
            tuple(tensors["logprobs"][at_reply : at_reply + reply]),
            end,
        )
        at_prompt, at_reply = at_prompt + prompt, at_reply + reply
    return found
