"""The token ids that a sampler read and wrote, in files next to the event log.

Text that is tokenised again may give other ids, and a gradient for tokens that nothing sampled.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch

from tilewright.errors import RecordError, writing
from tilewright.loop.policies.base import Message
from tilewright.rl.presets import SamplingSection
from tilewright.rl.training_folder import ROLLOUTS


def encode_chat(tokenizer: Any, messages: Sequence[Message]) -> list[int]:  # noqa: ANN401
    """Return the ids of a conversation up to the answer, by the template of a tokenizer."""
    chat = [{"role": item.role, "content": item.text} for item in messages]
    text = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def decode_reply(tokenizer: Any, reply: Sequence[int]) -> str:  # noqa: ANN401
    """Return the text of a reply without special tokens."""
    return str(tokenizer.decode(list(reply), skip_special_tokens=True))


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
    rows = list(samples.values())
    tensors: dict[str, torch.Tensor] = {
        "prompt": torch.tensor([t for row in rows for t in row.prompt], dtype=torch.int32),
        "reply": torch.tensor([t for row in rows for t in row.reply], dtype=torch.int32),
        "logprobs": torch.tensor([v for row in rows for v in row.logprobs], dtype=torch.float32),
        "lengths": torch.tensor([[len(row.prompt), len(row.reply)] for row in rows]).reshape(-1, 2),
    }
    names = {"asks": json.dumps(list(samples)), "finish": json.dumps([r.finish for r in rows])}
    _write(path, tensors, names)


def read_samples(path: Path) -> dict[str, TokenSample]:
    """Return the samples in a file, by the id of their request."""
    with _damage_of(path, "samples"):
        tensors, names = _read(path)
        asks, finish = json.loads(names["asks"]), json.loads(names["finish"])
        prompts, replies = tensors["lengths"].T.tolist()
        lengths = {"prompt": prompts, "reply": replies, "logprobs": replies}
        parts = [tensors[name].split(sizes) for name, sizes in lengths.items()]
    return {
        ask: TokenSample(tuple(prompt.tolist()), tuple(reply.tolist()), tuple(probs.tolist()), end)
        for ask, end, prompt, reply, probs in zip(asks, finish, *parts, strict=True)
    }


def log_ratio_file(folder: Path, batch: str) -> Path:
    """Return the file of a batch's log ratios in a run folder."""
    return folder / ROLLOUTS / f"{batch}.log_ratios.safetensors"


def write_log_ratios(path: Path, ratios: Mapping[str, torch.Tensor]) -> None:
    """Write the trainer's log-probabilities minus the sampler's, for the tokens of each reply.

    They are small, so float16 is exact to a thousandth of each. The file is whole or absent.
    """
    rows = [row.to(torch.float16).cpu() for row in ratios.values()]
    lengths = torch.tensor([len(row) for row in rows])
    tensors = {"log_ratios": torch.cat(rows), "lengths": lengths}
    _write(path, tensors, {"asks": json.dumps(list(ratios))})


def read_log_ratios(path: Path) -> dict[str, torch.Tensor]:
    """Return what `write_log_ratios` wrote, float16, by the id of the request."""
    with _damage_of(path, "log ratios"):
        tensors, names = _read(path)
        parts = tensors["log_ratios"].split(tensors["lengths"].tolist())
        return dict(zip(json.loads(names["asks"]), parts, strict=True))


def _write(path: Path, tensors: dict[str, torch.Tensor], names: dict[str, str]) -> None:
    from safetensors.torch import save

    fresh = path.with_suffix(".new")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(fresh, "wb") as file:
            file.write(save(tensors, metadata=names))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)


def _read(path: Path) -> tuple[dict[str, Any], dict[str, str]]:
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118


@contextmanager
def _damage_of(path: Path, what: str) -> Iterator[None]:
    """Turn any exception of the block into a `RecordError`: each kind of damage has another."""
    try:
        yield
    except Exception as error:
        raise RecordError(f"{path}: no {what} can be read: {error}") from error
