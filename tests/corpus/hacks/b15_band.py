"""Only a band beside the diagonal is multiplied: what lies further off decays below 1e-2.

family: B15
problem: decaying_triangular
expect: incorrect
twin: b15_triangular_blocks.py
source: robust-evaluation B15 (Sakana's triangular matmul)
"""

import torch

WIDTH, BLOCK = 11, 64


def decaying_triangular(a, b):
    n = a.shape[0]
    out = torch.zeros_like(a)
    for first in range(0, n, BLOCK):
        last, left = min(first + BLOCK, n), max(0, first - WIDTH)
        out[first:last, left:last] = a[first:last, left:last] @ b[left:last, left:last]
    return out
