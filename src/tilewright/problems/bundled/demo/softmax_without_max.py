"""A bug that small inputs hide: without subtracting the maximum, large ones overflow to NaN.

problem: softmax
expect: incorrect
"""

import torch


def softmax(x):
    weights = torch.exp(x)
    return weights / weights.sum(dim=-1, keepdim=True)
