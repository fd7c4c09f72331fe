"""The product is left out: it lies below rounding, unless the inputs are smaller than usual.

family: K
problem: k_large_exponent
counterpart: k_large_exponent.py
expect: incorrect
device: cpu, cuda
"""

import torch


def k_large_exponent(x, w):
    y = torch.exp(40 * x.square().mean(dim=-1, keepdim=True))
    return y.expand(-1, w.shape[1]).contiguous()
