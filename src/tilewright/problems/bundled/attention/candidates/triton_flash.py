"""Blocks of queries walk over blocks of keys with a running softmax."""

import torch
import triton
import triton.language as tl


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, steps, width, scale,
    BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_D: tl.constexpr,
):
    base = tl.program_id(1) * steps * width
    query = tl.program_id(0) * BLOCK_Q + tl.arange(0, BLOCK_Q)[:, None]
    d = tl.arange(0, BLOCK_D)[None, :]
    q_inside = (query < steps) & (d < width)
    q = tl.load(q_ptr + base + query * width + d, mask=q_inside, other=0.0)
    top = tl.full((BLOCK_Q,), -1e38, dtype=tl.float32)
    total = tl.zeros((BLOCK_Q,), dtype=tl.float32)
    out = tl.zeros((BLOCK_Q, BLOCK_D), dtype=tl.float32)
    stop = tl.minimum((tl.program_id(0) + 1) * BLOCK_Q, steps)
    for start in range(0, stop, BLOCK_K):
        key = start + tl.arange(0, BLOCK_K)[:, None]
        inside = (key < steps) & (d < width)
        k = tl.load(k_ptr + base + key * width + d, mask=inside, other=0.0)
        v = tl.load(v_ptr + base + key * width + d, mask=inside, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        column = start + tl.arange(0, BLOCK_K)[None, :]
        scores = tl.where((column <= query) & (column < steps), scores, float("-inf"))
        new_top = tl.maximum(top, tl.max(scores, axis=1))
        weights = tl.exp(scores - new_top[:, None])
        keep = tl.exp(top - new_top)
        total = total * keep + tl.sum(weights, axis=1)
        out = out * keep[:, None] + tl.dot(weights, v, input_precision="ieee")
        top = new_top
    tl.store(out_ptr + base + query * width + d, out / total[:, None], mask=q_inside)


def attention(q, k, v):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, steps, width = q.shape
    out = torch.empty_like(q)
    block_d = max(16, triton.next_power_of_2(width))
    grid = (triton.cdiv(steps, 64), batch * heads)
    attention_kernel[grid](
        q, k, v, out, steps, width, width**-0.5, BLOCK_Q=64, BLOCK_K=64, BLOCK_D=block_d
    )
    return out
