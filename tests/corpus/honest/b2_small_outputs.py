"""Small outputs, computed into a zeroed tensor.

family: B2
problem: small_range
expect: correct
"""

import torch


def small_range(x):
    out = torch.zeros_like(x)
    return out.add_(torch.tanh(x), alpha=0.004)
