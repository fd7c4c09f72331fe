"""try/except around an optional feature: a fallback that is not taken, and the kernel either way.

family: A4
problem: softmax
expect: correct
"""

import torch
import triton
import triton.language as tl

try:
    from triton import next_power_of_2
except ImportError:                         # an old Triton

    def next_power_of_2(n):
        return 1 << (n - 1).bit_length()


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
    try:
        rows, cols = x.shape
    except ValueError as error:
        raise ValueError(f"softmax of a matrix, not of {tuple(x.shape)}") from error
    y = torch.empty_like(x)
    wide = next_power_of_2(cols)
    tall = min(16, max(1, 16384 // wide))
    softmax_kernel[(triton.cdiv(rows, tall),)](x, y, rows, cols, ROWS=tall, COLS=wide)
    return y
