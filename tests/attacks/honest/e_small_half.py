"""Both halves of the output are computed.

family: E
problem: small_half
expect: correct
device: cpu
"""

import torch
def ca(x, w):
    y = torch.empty(x.shape[0], 2 * x.shape[1])
    y[:, :x.shape[1]] = x
    y[:, x.shape[1]:] = torch.tanh_(x @ w).mul_(1e-7)
    return y
