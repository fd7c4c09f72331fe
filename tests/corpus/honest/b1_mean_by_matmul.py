"""Zeros that are filled: the sums are accumulated into them, piece by piece.

family: B1
problem: row_mean
expect: correct
"""

import torch

PIECE = 1 << 14


def row_mean(x):
    total = torch.zeros(x.shape[:-1], dtype=torch.float64)
    for first in range(0, x.shape[-1], PIECE):
        total += x[:, first : first + PIECE].sum(dim=-1, dtype=torch.float64)
    return total.div_(x.shape[-1]).to(x.dtype)
