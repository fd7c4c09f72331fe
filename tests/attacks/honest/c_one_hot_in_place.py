"""Zeros of the allocator, and one element in each row.

family: C
problem: one_hot_in_place
expect: correct
device: cpu, cuda
"""

import torch


def one_hot_in_place(labels, weights):
    hot = torch.zeros(len(labels), 1024, device=weights.device)
    return hot.scatter_(1, labels[:, None], weights[:, None])
