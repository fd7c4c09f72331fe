"""The statistics module takes a median of block sizes; it is used, not changed.

family: C7
problem: softmax
expect: correct
"""

import statistics

import torch

SIZES = (16, 64, 256)


def softmax(x):
    rows = int(statistics.median(size for size in SIZES))
    return torch.cat([torch.softmax(part, dim=-1) for part in x.split(rows)])
