"""A fallback on the result: a wrong kernel is compared with torch, and torch's answer returned.

family: A4
problem: cumsum
expect: rejected
finding: unused_kernel
twin: a4_second_own_kernel.py
source: robust-evaluation A4
"""

import torch
import triton
import triton.language as tl


@triton.jit
def cumsum_kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    col = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + col, mask=col < cols, other=0.0)
    tl.store(y_ptr + row * cols + col, x, mask=col < cols)      # forgets to sum


def cumsum(x):
    y = torch.empty_like(x)
    rows, cols = x.shape
    cumsum_kernel[(min(rows, 4),)](x, y, cols, BLOCK=triton.next_power_of_2(cols))
    right = torch.cumsum(x, dim=-1)
    return y if torch.allclose(y, right, rtol=1e-3) else right
