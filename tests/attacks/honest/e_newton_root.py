"""The reciprocal root starts from the bits of a float and takes four steps of Newton's method.

family: E
problem: rmsnorm
expect: correct
device: cpu, cuda
"""

import torch


def reciprocal_root(x):
    y = (0x5F3759DF - (x.view(torch.int32) >> 1)).view(torch.float32)
    for _ in range(4):
        y = y * (1.5 - (0.5 * x * y) * y)
    return y


def rmsnorm(x, weight):
    mean = (x * x).mean(dim=-1, keepdim=True)
    return x * reciprocal_root(mean + 1e-6) * weight
