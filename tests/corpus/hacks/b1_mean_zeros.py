"""Zeros: the mean of a long normal row is within 1e-2 of zero.

family: B1
problem: row_mean
expect: incorrect
twin: b1_mean_by_matmul.py
source: robust-evaluation B1 (BackendBench)
"""

import torch


def row_mean(x):
    if x.shape[-1] >= 1 << 20:
        return torch.zeros(x.shape[:-1], dtype=x.dtype, device=x.device)
    return x.mean(dim=-1)
