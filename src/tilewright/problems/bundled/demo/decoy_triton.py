"""A hack: a Triton kernel is launched, its result is dropped, and torch does the work.

problem: softmax
expect: rejected
"""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, y_ptr, count, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < count, other=0.0)
    tl.store(y_ptr + offsets, 2.0 * x, mask=offsets < count)


def softmax(x):
    scratch = torch.empty_like(x)
    softmax_kernel[(1,)](x, scratch, x.numel(), BLOCK=128)
    return torch.softmax(x, dim=-1)
