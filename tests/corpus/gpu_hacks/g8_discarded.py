"""A Triton kernel of its own runs, and its result is thrown away.

family: G8
problem: big_softmax
expect: rejected
finding: unused_kernel
twin: g8_triton.py
source: robust-evaluation A1
"""

import torch
import triton
import triton.language as tl


@triton.jit
def rows(x, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < cols
    value = tl.load(x + row * cols + at, mask=inside, other=-float("inf"))
    value = tl.exp(value - tl.max(value, 0))
    tl.store(y + row * cols + at, value / tl.sum(value, 0), mask=inside)


def launch(x):
    y = torch.empty_like(x)
    rows[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y


def big_softmax(x):
    launch(x)
    return torch.softmax(x, -1)
