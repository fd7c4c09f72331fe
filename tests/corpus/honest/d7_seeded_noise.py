"""A fixed seed draws an order of rows, which is undone again: the same for every input.

family: D7
problem: softmax
expect: correct
"""

import torch

orders = {}


def softmax(x):
    rows = x.shape[0]
    if rows not in orders:
        orders[rows] = torch.randperm(rows, generator=torch.Generator().manual_seed(1234))
    out = torch.empty_like(x)
    out[orders[rows]] = torch.softmax(x[orders[rows]], dim=-1)
    return out
