"""`contextlib.suppress` around a hint that may not exist; the kernel is outside.

family: A4
problem: add_relu
expect: correct
"""

import contextlib

import torch
import triton
import triton.language as tl

with contextlib.suppress(AttributeError):
    torch.backends.no_such_backend.prefer_large_pages = True


@triton.jit
def add_relu_kernel(x_ptr, y_ptr, z_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < count)
    y = tl.load(y_ptr + at, mask=at < count)
    total = x + y
    tl.store(z_ptr + at, tl.where(total < 0.0, 0.0, total), mask=at < count)


def add_relu(x, y):
    z = torch.empty_like(x)
    count = x.numel()
    add_relu_kernel[(triton.cdiv(count, 65536),)](x, y, z, count, BLOCK=65536)
    return z
