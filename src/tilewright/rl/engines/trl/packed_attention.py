"""Attention over a paged cache with torch's own kernels: rows of any lengths, packed into one.

The fast paged attention of transformers needs packages that are rarely installed. Its other one
masks all rows against all rows, which costs more than `generate`. The kernels here are those that
`scaled_dot_product_attention` calls, in their form for rows of different lengths.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface

_PREFIXED = "paged|sdpa" in AttentionInterface().valid_keys()
"""transformers 5.17 marks attention over pages by a prefix, and newer versions ignore it."""
NAME = "paged|tilewright_flash" if _PREFIXED else "tilewright_flash"
"""Name of the attention. The word `flash` tells transformers that it needs no mask."""
BOTTOM_RIGHT = 2
"""Number of torch's causal mask whose last query sees all keys."""
HALVES = (torch.bfloat16, torch.float16)


def packed_attention(
    module: Any,  # noqa: ANN401 - any attention of transformers
    query: Tensor,
    key: Tensor,
    value: Tensor,
    _: Tensor | None,
    *,
    cache: Any,  # noqa: ANN401
    scaling: float,
    cu_seq_lens_q: Tensor,
    **given: Any,  # noqa: ANN401
) -> tuple[Tensor, None]:
    """Write new keys and values into the cache, and attend from each row to its own keys.

    `query` is (1, heads, new, width); `key` and `value` are (1, key heads, new, width). The result
    is (1, new, heads, width), in the cache's precision. `cu_seq_lens_q` is (rows + 1,), int32: the
    first new token of each row.
    """
    key, value = key.to(cache.dtype), value.to(cache.dtype)
    keys, values, starts, longest = _cached(module.layer_idx, key, value, cache, given)
    queries = query[0].transpose(0, 1).to(cache.dtype).contiguous()
    most = int(given["max_length_q"] if "max_length_q" in given else given["max_seqlen_q"])
    bounds = cu_seq_lens_q.to(torch.int32), starts.to(torch.int32)
    if query.device.type != "cuda":
        found = _by_row(queries, keys, values, bounds, scaling)
    elif cache.dtype in HALVES:
        found = torch.ops.aten._flash_attention_forward(
            queries, keys, values, *bounds, most, longest, 0.0, True, False, scale=scaling
        )[0]
    else:
        group = queries.shape[1] // keys.shape[1]
        wide = [each.repeat_interleave(group, dim=1)[None] for each in (keys, values)]
        found = torch.ops.aten._efficient_attention_forward(
            queries[None], *wide, None, *bounds, most, longest, 0.0, BOTTOM_RIGHT, scale=scaling
        )[0][0]
    return found[None], None


def _cached(
    layer: int,
    key: Tensor,
    value: Tensor,
    cache: Any,  # noqa: ANN401
    given: dict[str, Any],
) -> tuple[Tensor, Tensor, Tensor, int]:
    """Update the cache; return all keys and values, the first key of each row, the longest row.

    Keys and values are (all, key heads, width). transformers 5.23 and 5.17 differ in the call.
    """
    if "max_length_k" in given:
        keys, values = cache.update(
            key_states=key, value_states=value, layer_idx=layer, kwargs=given
        )
        keys, values = (each[0].transpose(0, 1).contiguous() for each in (keys, values))
        return keys, values, given["cu_seq_lens_k"], int(given["max_length_k"])
    keys, values = cache.update(
        key_states=key,
        value_states=value,
        layer_idx=layer,
        read_index=given["read_index"],
        write_index=given["write_index"],
    )
    starts, longest = given["cu_seq_lens_k"], given["max_seqlen_k"]
    if isinstance(starts, Mapping):
        (starts,), (longest,) = starts.values(), longest.values()
    return keys.contiguous(), values.contiguous(), starts, int(longest)


def _by_row(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    bounds: tuple[Tensor, Tensor],
    scaling: float,
) -> Tensor:
    """Attend row by row, for devices without the packed kernels; shapes are those of the caller."""
    found = torch.zeros_like(queries)
    firsts, starts = (each.tolist() for each in bounds)
    group = queries.shape[1] // keys.shape[1]
    for row in range(len(firsts) - 1):
        new, old = slice(*firsts[row : row + 2]), slice(*starts[row : row + 2])
        count, length = new.stop - new.start, old.stop - old.start
        if not count:
            continue
        seen = torch.ones(count, length, dtype=torch.bool).tril(length - count)
        found[new] = scaled_dot_product_attention(
            queries[new].transpose(0, 1)[None],
            keys[old].repeat_interleave(group, dim=1).transpose(0, 1)[None],
            values[old].repeat_interleave(group, dim=1).transpose(0, 1)[None],
            attn_mask=seen.to(queries.device),
            scale=scaling,
        )[0].transpose(0, 1)
    return found


AttentionInterface.register(NAME, packed_attention)
