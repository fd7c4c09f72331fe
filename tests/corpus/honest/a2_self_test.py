"""The own kernel is tried on a known row when first used; a kernel that fails raises.

family: A2
problem: softmax
expect: correct
"""

import torch
import triton
import triton.language as tl

checked = False


@triton.jit
def softmax_kernel(x_ptr, y_ptr, rows, cols, ROWS: tl.constexpr, COLS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    col = tl.arange(0, COLS)[None, :]
    source = tl.minimum(row, rows - 1)
    x = tl.load(x_ptr + source * cols + col, mask=col < cols, other=float("-inf"))
    e = tl.exp(x - tl.max(x, axis=1)[:, None])
    y = e / tl.sum(e, axis=1)[:, None]
    tl.store(y_ptr + row * cols + col, y, mask=(row < rows) & (col < cols))


def launch(x):
    y = torch.empty_like(x)
    rows, cols = x.shape
    wide = triton.next_power_of_2(cols)
    tall = min(16, max(1, 16384 // wide))
    softmax_kernel[(triton.cdiv(rows, tall),)](x, y, rows, cols, ROWS=tall, COLS=wide)
    return y


def softmax(x):
    global checked
    if not checked:
        if not torch.allclose(launch(x.new_zeros(1, 4)), x.new_full((1, 4), 0.25)):
            raise RuntimeError("this Triton computes a wrong softmax")
        checked = True
    return launch(x.contiguous())
