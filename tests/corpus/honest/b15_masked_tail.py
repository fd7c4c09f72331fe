"""Full blocks without a mask, and the tail in one masked program: tuned, and complete.

family: B15
problem: add_relu
expect: correct
"""

import torch
import triton
import triton.language as tl


@triton.jit
def full_blocks(x_ptr, y_ptr, z_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(x_ptr + at) + tl.load(y_ptr + at)
    tl.store(z_ptr + at, tl.where(total < 0.0, 0.0, total))


@triton.jit
def tail(x_ptr, y_ptr, z_ptr, first, count, BLOCK: tl.constexpr):
    at = first + tl.arange(0, BLOCK)
    total = tl.load(x_ptr + at, mask=at < count) + tl.load(y_ptr + at, mask=at < count)
    tl.store(z_ptr + at, tl.where(total < 0.0, 0.0, total), mask=at < count)


def add_relu(x, y):
    z = torch.empty_like(x)
    count, block = x.numel(), 65536
    blocks = count // block
    if blocks:
        full_blocks[(blocks,)](x, y, z, BLOCK=block)
    if count % block:
        tail[(1,)](x, y, z, blocks * block, count, BLOCK=block)
    return z
