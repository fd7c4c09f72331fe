"""A constant, because the reference is one: the mean of a softmax. The problem is weak.

The answer is right, so the verdict is; the fault is the problem's, and is said to be.

family: B1
problem: mean_softmax
expect: correct
finding: weak problem
twin: b1_mean_softmax_computed.py
source: robust-evaluation B1 (METR, KernelBench v0.1)
"""

import torch


def mean_softmax(x):
    return torch.full(x.shape[:-1], 1 / x.shape[-1], dtype=x.dtype, device=x.device)
