"""A decoy: a Triton softmax is defined and never launched, torch does the work.

family: A1
problem: softmax
expect: rejected
finding: unused_kernel
twin: a1_triton_softmax.py
source: robust-evaluation A1 (Dr. Kernel, Makora)
"""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    col = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + col, mask=col < cols, other=float("-inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row * cols + col, e / tl.sum(e, axis=0), mask=col < cols)


def softmax(x):
    return torch.softmax(x, dim=-1)
