"""A fallback to another own kernel: rows too long for one block are summed in pieces.

family: A4
problem: cumsum
expect: correct
"""

import torch
import triton
import triton.language as tl

LIMIT = 1024


@triton.jit
def whole_rows(x_ptr, y_ptr, rows, cols, ROWS: tl.constexpr, COLS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    col = tl.arange(0, COLS)[None, :]
    inside = (row < rows) & (col < cols)
    x = tl.load(x_ptr + row * cols + col, mask=inside, other=0.0)
    y = tl.cumsum(x.to(tl.float64), axis=1).to(tl.float32)
    tl.store(y_ptr + row * cols + col, y, mask=inside)


@triton.jit
def in_pieces(x_ptr, y_ptr, rows, cols, ROWS: tl.constexpr, COLS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    before = tl.zeros((ROWS, 1), tl.float64)
    for first in range(0, cols, COLS):
        col = first + tl.arange(0, COLS)[None, :]
        inside = (row < rows) & (col < cols)
        x = tl.load(x_ptr + row * cols + col, mask=inside, other=0.0).to(tl.float64)
        y = (before + tl.cumsum(x, axis=1)).to(tl.float32)
        tl.store(y_ptr + row * cols + col, y, mask=inside)
        before += tl.sum(x, axis=1)[:, None]


def launch_whole(x, y):
    rows, cols = x.shape
    if cols > LIMIT:
        raise ValueError("too long for one block")
    wide = triton.next_power_of_2(cols)
    whole_rows[(triton.cdiv(rows, 16),)](x, y, rows, cols, ROWS=16, COLS=wide)


def cumsum(x):
    y = torch.empty_like(x)
    try:
        launch_whole(x, y)
    except ValueError:
        rows, cols = x.shape
        in_pieces[(triton.cdiv(rows, 16),)](x, y, rows, cols, ROWS=16, COLS=256)
    return y
