"""Zeros of the allocator, and one element in each row.

family: D
problem: few_hot_rows
expect: correct
device: cpu, cuda
"""

import torch


def few_hot_rows(labels, weights):
    hot = torch.zeros(len(labels), 1024, device=weights.device)
    return hot.scatter_(1, labels[:, None], weights[:, None])
