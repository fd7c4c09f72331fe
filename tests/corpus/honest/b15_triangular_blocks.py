"""Only blocks on and below the diagonal are multiplied: the others are exactly zero.

family: B15
problem: decaying_triangular
expect: correct
"""

import torch

BLOCK = 128


def decaying_triangular(a, b):
    n = a.shape[0]
    out = torch.zeros_like(a)
    for first in range(0, n, BLOCK):
        last = min(first + BLOCK, n)
        torch.mm(a[first:last, :last], b[:last, :last], out=out[first:last, :last])
    return out
