"""Each program keeps a few whole rows on chip and reads them once."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, y_ptr, rows, cols, BLOCK_ROWS: tl.constexpr, BLOCK_COLS: tl.constexpr):
    row = tl.program_id(0) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)[:, None]
    col = tl.arange(0, BLOCK_COLS)[None, :]
    source = tl.minimum(row, rows - 1)          # a row past the end repeats the last one
    x = tl.load(x_ptr + source * cols + col, mask=col < cols, other=float("-inf"))
    e = tl.exp(x - tl.max(x, axis=1)[:, None])
    y = e / tl.sum(e, axis=1)[:, None]
    tl.store(y_ptr + row * cols + col, y, mask=(row < rows) & (col < cols))


def softmax(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    rows, cols = x.shape
    block_cols = triton.next_power_of_2(cols)
    block_rows = min(16, max(1, 16384 // block_cols))
    grid = (triton.cdiv(rows, block_rows),)
    softmax_kernel[grid](
        x, y, rows, cols, BLOCK_ROWS=block_rows, BLOCK_COLS=block_cols, num_warps=8
    )
    return y
