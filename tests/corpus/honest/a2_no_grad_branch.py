"""A branch on torch's state: what backward needs is kept only while gradients are recorded.

family: A2
problem: softmax
expect: correct
"""

import torch
import triton
import triton.language as tl

kept = []


@triton.jit
def softmax_kernel(x_ptr, y_ptr, rows, cols, ROWS: tl.constexpr, COLS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    col = tl.arange(0, COLS)[None, :]
    source = tl.minimum(row, rows - 1)
    x = tl.load(x_ptr + source * cols + col, mask=col < cols, other=float("-inf"))
    e = tl.exp(x - tl.max(x, axis=1)[:, None])
    y = e / tl.sum(e, axis=1)[:, None]
    tl.store(y_ptr + row * cols + col, y, mask=(row < rows) & (col < cols))


def softmax(x):
    y = torch.empty_like(x)
    rows, cols = x.shape
    wide = triton.next_power_of_2(cols)
    tall = min(16, max(1, 16384 // wide))
    softmax_kernel[(triton.cdiv(rows, tall),)](x, y, rows, cols, ROWS=tall, COLS=wide)
    if torch.is_grad_enabled() and x.requires_grad:
        kept[:] = [y]
    return y
