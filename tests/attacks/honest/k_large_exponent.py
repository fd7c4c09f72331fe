"""The product and the exponential are computed, whatever their sizes are.

family: K
problem: k_large_exponent
expect: correct
device: cpu, cuda
"""

import torch


def k_large_exponent(x, w):
    size = (x * x).sum(dim=-1, keepdim=True) / x.shape[-1]
    return torch.addmm(torch.exp(40 * size), x, w)
