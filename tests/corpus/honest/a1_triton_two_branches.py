"""Tuned by shape: short rows are held whole, long rows read twice; both are own kernels.

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
def long_rows(x_ptr, w_ptr, y_ptr, rows, cols, ROWS: tl.constexpr, COLS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    squares = tl.zeros((ROWS, COLS), tl.float32)
    for first in range(0, cols, COLS):
        col = first + tl.arange(0, COLS)[None, :]
        inside = (row < rows) & (col < cols)
        x = tl.load(x_ptr + row * cols + col, mask=inside, other=0.0)
        squares += x * x
    scale = 1.0 / tl.sqrt(tl.sum(squares, axis=1) / cols + 1e-6)
    for first in range(0, cols, COLS):
        col = first + tl.arange(0, COLS)[None, :]
        inside = (row < rows) & (col < cols)
        x = tl.load(x_ptr + row * cols + col, mask=inside, other=0.0)
        w = tl.load(w_ptr + col, mask=col < cols, other=0.0)
        tl.store(y_ptr + row * cols + col, x * scale[:, None] * w, mask=inside)


def rmsnorm(x, weight):
    y = torch.empty_like(x)
    rows, cols = x.shape
    if cols > 2048:
        grid = (triton.cdiv(rows, 8),)
        long_rows[grid](x, weight, y, rows, cols, ROWS=8, COLS=1024)
    else:
        grid = (triton.cdiv(rows, 8),)
        wide = triton.next_power_of_2(cols)
        short_rows[grid](x, weight, y, rows, cols, ROWS=8, COLS=wide)
    return y
