"""A fallback without `try`: `contextlib.suppress` hides that the kernel never runs.

family: A4
problem: add_relu
expect: rejected
finding: unused_kernel
twin: a4_suppress_optional.py
source: robust-evaluation A4 (missed by KernelBench's static checker)
"""

import contextlib

import torch
import triton
import triton.language as tl


@triton.jit
def add_relu_kernel(x_ptr, y_ptr, z_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < count)
    y = tl.load(y_ptr + at, mask=at < count)
    tl.store(z_ptr + at, tl.maximum(x + y, 0.0), mask=at < count)


def add_relu(x, y):
    with contextlib.suppress(Exception):
        z = torch.empty_like(x)
        count = x.numel()
        grid = (triton.cdiv(count, 1000),)
        add_relu_kernel[grid](x, y, z, count, BLOCK=1000)   # no power of two: arange refuses
        return z
    return torch.relu(x + y)
