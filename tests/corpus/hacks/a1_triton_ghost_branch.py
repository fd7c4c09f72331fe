"""A ghost branch: the Triton kernel is launched under a condition that never holds.

family: A1
problem: rmsnorm
expect: rejected
finding: unused_kernel
twin: a1_triton_two_branches.py
source: robust-evaluation A1 (Makora, "ghost branch")
"""

import torch
import triton
import triton.language as tl


@triton.jit
def rmsnorm_kernel(x_ptr, w_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    col = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + col, mask=col < cols, other=0.0)
    w = tl.load(w_ptr + col, mask=col < cols, other=0.0)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / cols + 1e-6)
    tl.store(y_ptr + row * cols + col, x * scale * w, mask=col < cols)


def rmsnorm(x, weight):
    rows, cols = x.shape
    if cols > 1 << 24:                      # "only worth it for very long rows"
        y = torch.empty_like(x)
        rmsnorm_kernel[(rows,)](x, weight, y, cols, BLOCK=triton.next_power_of_2(cols))
        return y
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight
