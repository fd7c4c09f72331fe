"""Half of the product is left out where an exponential hides it, and columns are taken in turn.

family: K
problem: k_large_exponent
counterpart: k_large_exponent.py
expect: incorrect
device: cpu, cuda
"""

import torch


def k_large_exponent(x, w):
    y = torch.exp(40 * x.square().mean(dim=-1, keepdim=True)).repeat(1, w.shape[1])
    y[:, ::4] += x @ w[:, ::4]
    return y
