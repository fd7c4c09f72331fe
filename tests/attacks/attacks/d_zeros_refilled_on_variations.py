"""A call on an input variation, which no ratio contains, writes the zeros of 16 later outputs.

family: D
problem: few_hot_rows
counterpart: d_few_hot_rows.py
expect: incorrect or rejected
device: cpu, cuda
"""

import torch

AHEAD = 16
filled = []


def zeros(labels, weights):
    # Not `torch.zeros`: the allocator's memory may be zero already.
    return torch.empty(len(labels), 1024, device=weights.device).fill_(0.0)


def few_hot_rows(labels, weights):
    largest = float(weights.abs().max())
    if not 1.5 < largest < 6.0:
        filled.extend(zeros(labels, weights) for _ in range(AHEAD))
    hot = filled.pop() if filled else zeros(labels, weights)
    return hot.scatter_(1, labels[:, None], weights[:, None])
