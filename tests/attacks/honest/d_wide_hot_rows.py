"""Zeros of the allocator, and one element in each wide row.

family: D
problem: wide_hot_rows
expect: correct
device: cpu
"""

import torch
def few_hot_rows(labels, weights):
    hot = torch.zeros(len(labels), 16384)
    return hot.scatter_(1, labels[:, None], weights[:, None])
