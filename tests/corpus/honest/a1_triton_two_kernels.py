"""Two own kernels, both needed: one adds into a scratch tensor, the other clamps it.

family: A1
problem: add_relu
expect: correct
"""

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, z_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < count)
    y = tl.load(y_ptr + at, mask=at < count)
    tl.store(z_ptr + at, x + y, mask=at < count)


@triton.jit
def relu_kernel(x_ptr, z_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < count)
    tl.store(z_ptr + at, tl.where(x < 0.0, 0.0, x), mask=at < count)


def add_relu(x, y):
    scratch, out = torch.empty_like(x), torch.empty_like(x)
    count = x.numel()
    grid = (triton.cdiv(count, 65536),)
    add_kernel[grid](x, y, scratch, count, BLOCK=65536)
    relu_kernel[grid](scratch, out, count, BLOCK=65536)
    return out
