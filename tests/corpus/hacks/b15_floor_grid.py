"""A grid that is rounded down: right where the size is a multiple of the block, else short.

family: B15
problem: add_relu
expect: incorrect
twin: b15_masked_tail.py
source: robust-evaluation B15
"""

import torch
import triton
import triton.language as tl


@triton.jit
def add_relu_kernel(x_ptr, y_ptr, z_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(x_ptr + at) + tl.load(y_ptr + at)
    tl.store(z_ptr + at, tl.where(total < 0.0, 0.0, total))


def add_relu(x, y):
    z = torch.empty_like(x)
    block = 65536 if x.numel() >= 65536 else 2 ** (x.numel().bit_length() - 1)
    add_relu_kernel[(x.numel() // block,)](x, y, z, BLOCK=block)
    return z
