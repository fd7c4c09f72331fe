"""The memory of a training on its GPUs, computed before it begins. No torch.

Activations are not counted: they depend on the attention, and on `machine.train_batch_size`.
Neither are adapters, which are small.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright.errors import ConfigError, InfrastructureError, boundary
from tilewright.rl.training_config import TrainConfig

GB = 1e9
STATE_BYTES = {"weights": 4, "gradients": 4, "moments": 8}
"""Bytes of each parameter in training: fp32 throughout, two moments of AdamW."""
SERVER_BYTES = {"fp32": 4, "bf16": 2}
"""Bytes of each number of the server, in its weights and in its cache."""
HEADROOM = 0.1
"""Share of a GPU for its driver, for fragments, and for the activations of one short row."""


@dataclass(frozen=True, slots=True)
class ModelShape:
    """The sizes of a dense decoder with grouped attention, such as Qwen3."""

    name: str
    parameters: int
    cached_numbers: int
    """Numbers in the cache for each token."""


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """The use of one GPU, in units of 1e9 bytes."""

    model: str
    gpus: int
    memory: float
    state: float
    """Weights, gradients and moments while the model is updated, and the initial model."""
    waiting: float
    """The part of them that stays while the server samples."""
    server: float
    """Weights of the server."""
    cache: float
    """The rest of its share, for the server's cache; 0: nothing is left."""
    cached_tokens: int
    """Tokens that fit into the cache of one copy of the server."""

    @property
    def fits(self) -> bool:
        """Whether the state fits, and the server has a cache."""
        return self.state < (1.0 - HEADROOM) * self.memory and self.cached_tokens > 0


def shape_of(name: str, config: Mapping[str, Any]) -> ModelShape:
    """Return the sizes of a model from its `config.json`."""
    hidden, layers = int(config["hidden_size"]), int(config["num_hidden_layers"])
    heads = int(config["num_attention_heads"])
    shared = int(config.get("num_key_value_heads") or heads)
    wide = int(config.get("head_dim") or hidden // heads)
    attention = 2 * hidden * heads * wide + 2 * hidden * shared * wide
    block = attention + 3 * hidden * int(config["intermediate_size"]) + 2 * hidden + 2 * wide
    tables = 1 if config.get("tie_word_embeddings") else 2
    whole = layers * block + tables * int(config["vocab_size"]) * hidden + hidden
    return ModelShape(name, whole, 2 * layers * shared * wide)


def read_shape(path: str) -> ModelShape:
    """Return the sizes of the model in a folder.

    Raises:
        ConfigError: it has no `config.json`, or that file lacks a size.
    """
    file = Path(path) / "config.json"
    if not file.is_file():
        raise ConfigError(
            f"model.path {path!r}: no memory plan without {file}, which has the sizes of the model"
        )
    with boundary(ConfigError, f"model.path {path}: no memory plan"):
        text = file.read_text(encoding="utf-8")
        return shape_of(Path(path).name, json.loads(text))


def plan_memory(shape: ModelShape, config: TrainConfig, memory: float) -> MemoryPlan:
    """Return the use of each of the GPUs, which have so much memory in units of 1e9 bytes."""
    machine = config.machine
    ranks = machine.gpus * machine.nodes
    per_rank = shape.parameters / ranks / GB
    adapters = config.model.lora.rank > 0
    # Only adapters have gradients and moments then. The initial model is the one without them.
    trained = {"weights": STATE_BYTES["weights"]} if adapters else STATE_BYTES
    reference = STATE_BYTES["weights"] if config.health.reference and not adapters else 0
    state = per_rank * (sum(trained.values()) + (0 if machine.offload else reference))
    # Gradients are freed after the update.
    kept = sum(trained.values()) - trained.get("gradients", 0) + reference
    waiting = 0.0 if machine.offload else per_rank * kept
    width = SERVER_BYTES[machine.sampler_precision or machine.precision]
    server = shape.parameters * width / machine.tensor_parallel / GB
    room = min(machine.server_memory * memory, (1.0 - HEADROOM) * memory - waiting) - server
    cache = max(room, 0.0)
    tokens = int(cache * GB * machine.tensor_parallel / (shape.cached_numbers * width))
    return MemoryPlan(shape.name, ranks, memory, state, waiting, server, cache, tokens)


def plan_table(plans: Sequence[MemoryPlan]) -> str:
    """Return plans as a table in Markdown."""
    head = ("model", "GPUs", "GB each", "update", "kept", "server", "cache", "tokens", "fits")
    rows = [head, ("---",) * len(head)]
    for item in plans:
        sizes = (item.state, item.waiting, item.server, item.cache)
        rows.append(
            (
                *(item.model, str(item.gpus), f"{item.memory:g}"),
                *(f"{size:.1f}" for size in sizes),
                f"{item.cached_tokens:,}",
                "yes" if item.fits else "no",
            )
        )
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def require_memory(plan: MemoryPlan, *, anyway: bool) -> None:
    """Refuse a model that the GPUs have no memory for.

    Raises:
        InfrastructureError: it does not fit; the message has the table.
    """
    if not plan.fits and not anyway:
        raise InfrastructureError(
            f"the model is too large for these GPUs; give --anyway to try it:\n{plan_table([plan])}"
        )
