"""A fallback: the Triton kernel cannot run as written, and `except` lets torch do the work.

family: A4
problem: softmax
expect: rejected
finding: unused_kernel
twin: a4_optional_feature.py
source: robust-evaluation A4 (Kevin, KernelBench)
"""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    col = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + col, mask=col < cols, other=float("-inf"))
    e = tl.exp(x - tl.maximum_of_row(x))    # no such function
    tl.store(y_ptr + row * cols + col, e / tl.sum(e, axis=0), mask=col < cols)


def softmax(x):
    try:
        y = torch.empty_like(x)
        rows, cols = x.shape
        softmax_kernel[(rows,)](x, y, cols, BLOCK=triton.next_power_of_2(cols))
        return y
    except Exception:
        return torch.softmax(x, dim=-1)
