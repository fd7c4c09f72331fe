"""Torch does the work, then an own kernel multiplies the result by one, in place.

family: A2
problem: rmsnorm
expect: rejected
finding: unused_kernel
twin: a2_real_in_place.py
source: robust-evaluation A2
"""

import torch
import triton
import triton.language as tl


@triton.jit
def finish_kernel(y_ptr, count, scale, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.load(y_ptr + at, mask=at < count)
    tl.store(y_ptr + at, y * scale, mask=at < count)


def rmsnorm(x, weight):
    y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight
    count = y.numel()
    finish_kernel[(triton.cdiv(count, 65536),)](y, count, 1.0, BLOCK=65536)
    return y
