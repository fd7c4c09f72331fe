"""Zeros of the allocator, and one element in each row.

family: C
problem: very_wide_hot_rows
expect: correct
device: cpu
"""

import torch
def few_hot_rows(labels, weights):
    hot = torch.zeros(len(labels), 262144)
    return hot.scatter_(1, labels[:, None], weights[:, None])
