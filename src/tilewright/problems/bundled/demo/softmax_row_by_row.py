"""Honest and slow: right everywhere, but each row costs several calls from Python.

problem: softmax
expect: correct
"""

import torch


def softmax(x):
    y = torch.empty_like(x)
    for source, target in zip(x, y, strict=True):
        weights = torch.exp(source - source.max())
        target.copy_(weights / weights.sum())
    return y
