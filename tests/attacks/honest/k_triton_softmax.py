"""A Triton kernel on the current stream.

family: K
problem: k_softmax_scaled
expect: correct
device: cuda
"""

import torch
import triton
import triton.language as tl


@triton.jit
def rows_softmax(x_ptr, y_ptr, cols, COLS: tl.constexpr):
    row = tl.program_id(0)
    col = tl.arange(0, COLS)
    x = tl.load(x_ptr + row * cols + col, mask=col < cols, other=float("-inf")) * 0.5
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row * cols + col, e / tl.sum(e, axis=0), mask=col < cols)



def k_softmax_scaled(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    wide = triton.next_power_of_2(x.shape[1])
    rows_softmax[(x.shape[0],)](x, y, x.shape[1], COLS=wide, num_warps=8)
    return y
