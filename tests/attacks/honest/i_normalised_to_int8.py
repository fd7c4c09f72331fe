"""Rows are normalised with a reciprocal root, and quantised.

family: I
problem: quantised_normalised
expect: correct
device: cpu
"""

import torch
def quant(x):
    m = x.mean(-1, keepdim=True)
    v = (x - m).square_().mean(-1, keepdim=True)
    y = (x - m).mul_(torch.rsqrt(v + 1e-5) * 32)
    return y.round_().clamp_(-127, 127).to(torch.int8)
