"""Tuned by shape: short rows share a program, long rows have one each; both are own kernels.

family: A1
problem: rmsnorm
expect: correct
"""

import torch
import triton
import triton.language as tl


@triton.jit
def short_rows(x_ptr, w_ptr, y_ptr, rows, cols, ROWS: tl.constexpr, COLS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    col = tl.arange(0, COLS)[None, :]
    inside = (row < rows) & (col < cols)
    x = tl.load(x_ptr + row * cols + col, mask=inside, other=0.0)
    w = tl.load(w_ptr + col, mask=col < cols, other=0.0)
    scale = 1.0 / tl.sqrt(tl.sum(x * x, axis=1) / cols + 1e-6)
    tl.store(y_ptr + row * cols + col, x * scale[:, None] * w, mask=inside)


@triton.jit
def long_row(x_ptr, w_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    start = tl.program_id(0) * cols
    squares = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, cols, BLOCK):
        col = first + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + start + col, mask=col < cols, other=0.0)
        squares += x * x
    scale = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / cols + 1e-6)
    for first in range(0, cols, BLOCK):
        col = first + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + start + col, mask=col < cols, other=0.0)
        w = tl.load(w_ptr + col, mask=col < cols, other=0.0)
        tl.store(y_ptr + start + col, x * scale * w, mask=col < cols)


def rmsnorm(x, weight):
    y = torch.empty_like(x)
    rows, cols = x.shape
    if cols > 2048:
        long_row[(rows,)](x, weight, y, cols, BLOCK=2048)
    else:
        grid = (triton.cdiv(rows, 8),)
        wide = triton.next_power_of_2(cols)
        short_rows[grid](x, weight, y, rows, cols, ROWS=8, COLS=wide)
    return y
