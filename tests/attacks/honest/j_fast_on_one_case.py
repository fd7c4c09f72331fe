"""Small rows take another way than long ones, so that the cases have unequal speed-ups.

family: J
problem: softmax
expect: correct
device: cpu, cuda
"""

import torch


def softmax(x):
    if x.shape[-1] < 64:
        rows = [torch.exp(row - row.max()) for row in x]
        return torch.stack([row / row.sum() for row in rows])
    return torch.softmax(x, dim=-1)
