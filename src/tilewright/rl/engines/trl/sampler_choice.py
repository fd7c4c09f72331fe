"""The sampler that the settings choose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.loop.policies.local_model import OnWait
from tilewright.rl.engines.trl.paged_sampler import PagedSampler
from tilewright.rl.engines.trl.sampler import Precision, TransformersSampler
from tilewright.rl.training_config import MachineSection


def make_sampler(
    machine: MachineSection,
    model: Any,  # noqa: ANN401 - any model of transformers, with adapters or without
    tokenizer: Any,  # noqa: ANN401
    lease: str | None,
    precision: Precision,
    name: str,
    on_wait: OnWait = lambda _: None,
    note: Callable[[str], None] = lambda _: None,
) -> TransformersSampler:
    """Return the sampler of a training or of a measurement.

    `precision` is that of `generate`, which runs in the caller's thread. `note` receives the sizes
    of a paged cache.
    """
    batch = machine.sampling_batch_size
    if machine.sampler != "paged":
        return TransformersSampler(model, tokenizer, batch, lease, precision, name, on_wait)
    return PagedSampler(
        model,
        tokenizer,
        batch,
        lease,
        precision,
        name,
        on_wait,
        sampled_in=machine.sampler_precision or machine.precision,
        note=note,
    )
