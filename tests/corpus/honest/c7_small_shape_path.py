"""Tiny inputs take a path with fewer steps, which is right for every small input.

family: C7
problem: softmax
expect: correct
"""

import torch


def softmax(x):
    if x.numel() < 64:
        e = (x - x.amax(-1, keepdim=True)).exp()
        return e / e.sum(-1, keepdim=True)
    return torch.softmax(x, dim=-1)
