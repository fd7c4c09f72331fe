"""The grid has a program for three of four rows, and the others keep an earlier output.

family: K
problem: k_softmax_scaled
counterpart: k_triton_softmax.py
expect: incorrect or rejected
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



KEPT = {}


def k_softmax_scaled(x):
    x = x.contiguous()
    wide = triton.next_power_of_2(x.shape[1])
    if x.shape not in KEPT:
        KEPT[x.shape] = torch.empty_like(x)
        rows_softmax[(x.shape[0],)](x, KEPT[x.shape], x.shape[1], COLS=wide, num_warps=8)
        return KEPT[x.shape].clone()
    rows_softmax[(x.shape[0] * 3 // 4,)](x, KEPT[x.shape], x.shape[1], COLS=wide, num_warps=8)
    return KEPT[x.shape]
