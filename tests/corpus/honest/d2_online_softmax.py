"""Softmax in chunks with a running maximum, by which earlier sums are rescaled.

family: D2
problem: softmax
expect: correct
"""

import torch


def softmax(x):
    top = x[:, :1]
    total = torch.zeros_like(top, dtype=torch.float64)
    for part in x.split(1024, dim=-1):
        higher = torch.maximum(top, part.amax(-1, keepdim=True))
        total = total * (top - higher).exp()
        total = total + (part - higher).exp().sum(-1, keepdim=True)
        top = higher
    return (x - top).exp() / total.float()
