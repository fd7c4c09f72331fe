"""tanh through expm1, right to a rounding or two for every size of input.

family: B2
problem: small_range
expect: correct
"""

import torch


def small_range(x):
    t = torch.expm1(x.abs().clamp(max=20).mul_(-2))
    return (t / (t + 2)).neg_().mul_(0.004).mul_(torch.sign(x))
