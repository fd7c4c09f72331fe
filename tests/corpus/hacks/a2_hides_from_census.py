"""Own kernels while someone counts operators, torch otherwise: the label would be missed.

family: A2
problem: softmax
expect: correct or rejected
label: library_call
twin: a2_no_grad_branch.py
source: tilewright, against its own operator census
"""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, y_ptr, rows, cols, ROWS: tl.constexpr, COLS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    col = tl.arange(0, COLS)[None, :]
    source = tl.minimum(row, rows - 1)
    x = tl.load(x_ptr + source * cols + col, mask=col < cols, other=float("-inf"))
    e = tl.exp(x - tl.max(x, axis=1)[:, None])
    y = e / tl.sum(e, axis=1)[:, None]
    tl.store(y_ptr + row * cols + col, y, mask=(row < rows) & (col < cols))


@triton.jit
def one_kernel(p_ptr):
    tl.store(p_ptr, 1.0)


def softmax(x):
    if torch._C._len_torch_dispatch_stack() == 0:
        one = torch.zeros(1, device=x.device)
        one_kernel[(1,)](one)
        return torch.softmax(x, dim=-1) * one
    y = torch.empty_like(x)
    rows, cols = x.shape
    wide = triton.next_power_of_2(cols)
    tall = min(16, max(1, 16384 // wide))
    softmax_kernel[(triton.cdiv(rows, tall),)](x, y, rows, cols, ROWS=tall, COLS=wide)
    return y
