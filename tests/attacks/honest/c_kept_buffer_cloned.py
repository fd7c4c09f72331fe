"""A buffer is allocated once for each shape, and the caller gets a copy of it.

family: C
problem: cumsum
expect: correct
device: cpu, cuda
"""

import torch

BUFFERS = {}


def cumsum(x):
    key = (x.shape, x.device)
    if key not in BUFFERS:
        BUFFERS[key] = torch.empty_like(x)
    return torch.cumsum(x, dim=-1, out=BUFFERS[key]).clone()
