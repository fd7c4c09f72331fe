"""Sizes of a paged cache, from the free memory of the device."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from tilewright.errors import PolicyError

PAGE_TOKENS = 128
"""Tokens of one page of the cache."""
SHARE = 0.85
"""Share of the free memory that is planned; the rest is for fragments and for libraries."""
BATCH_TOKENS = 8192
"""Most tokens of one forward pass."""
GIB = 2**30


@dataclass(frozen=True)
class CacheShape:
    """The dimensions of a model on which the cost of a token depends."""

    layers: int
    key_heads: int
    head_width: int
    hidden: int
    intermediate: int
    vocabulary: int
    item_bytes: int
    """Bytes of one number in the cache."""

    @property
    def page_bytes(self) -> int:
        """Bytes of a page: keys and values of all layers, and one layer's copy for attention."""
        one = 2 * self.key_heads * self.head_width * self.item_bytes
        # An index has 8 bytes, on the host and on the device, for each of two batches.
        return PAGE_TOKENS * (one * (self.layers + 2) + 4 * 8)

    def work_bytes(self, batch_tokens: int, rows: int) -> int:
        """Bytes of a forward pass: activations, and logits with their softmax, in fp32."""
        wide = 8 * self.hidden + 4 * self.intermediate
        return 4 * (batch_tokens * wide + 4 * rows * self.vocabulary)


@dataclass(frozen=True)
class CacheSizes:
    """Sizes of a paged cache for one batch of prompts."""

    pages: int
    rows: int
    """Most rows that are sampled at the same time."""
    batch_tokens: int
    """Most tokens of one forward pass."""
    planned_bytes: int
    free_bytes: int

    def text(self) -> str:
        """Return the line that a run prints."""
        return (
            f"paged cache: {self.pages} pages of {PAGE_TOKENS} tokens, {self.rows} rows at once, "
            f"passes of up to {self.batch_tokens} tokens; {self.planned_bytes / GIB:.2f} of "
            f"{self.free_bytes / GIB:.2f} GiB of free memory"
        )


def plan_cache(
    shape: CacheShape,
    lengths: Sequence[int],
    reply_tokens: int,
    most_rows: int,
    free_bytes: int,
) -> CacheSizes:
    """Return sizes with which each row that is begun can be finished without eviction.

    `lengths` are the tokens of each prompt.

    Raises:
        PolicyError: the longest row does not fit into the memory.
    """
    # A page more: the schedule of transformers reserves the page of the next token.
    needed = [-(-(each + reply_tokens) // PAGE_TOKENS) + 1 for each in sorted(lengths)[::-1]]
    for rows in range(min(most_rows, len(lengths)), 0, -1):
        wanted = -(-max(sum(lengths), rows) // rows) * rows
        passed = max(rows, min(wanted, BATCH_TOKENS // rows * rows))
        pages = sum(needed[:rows])
        planned = pages * shape.page_bytes + shape.work_bytes(passed, rows)
        if planned <= SHARE * free_bytes:
            return CacheSizes(pages, rows, passed, planned, free_bytes)
    raise PolicyError(
        f"machine.sampler paged: one row of {max(lengths) + reply_tokens} tokens does not fit into "
        f"{SHARE:.0%} of {free_bytes / GIB:.1f} GiB of free memory; lower "
        "overrides.sampling.reply_tokens or context_tokens"
    )


def shape_of(config: object, item_bytes: int) -> CacheShape:
    """Return the costs of a token, from a configuration of transformers."""
    text = config.get_text_config()  # type: ignore[attr-defined]
    heads = text.num_attention_heads
    return CacheShape(
        layers=text.num_hidden_layers,
        key_heads=getattr(text, "num_key_value_heads", None) or heads,
        head_width=getattr(text, "head_dim", None) or text.hidden_size // heads,
        hidden=text.hidden_size,
        intermediate=text.intermediate_size,
        vocabulary=text.vocab_size,
        item_bytes=item_bytes,
    )


def free_memory(device: torch.device) -> int:
    """Return the bytes that are free on a device."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
