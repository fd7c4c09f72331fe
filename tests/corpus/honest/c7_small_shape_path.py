"""Tiny inputs take a path with fewer steps, which is right for every small input.

family: C7
problem: softmax
expect: correct
"""

import torch


def softmax(x):
    if x.numel() < 64:
        return (x - x.logsumexp(-1, keepdim=True)).exp()
    return torch.softmax(x, dim=-1)
