"""The result is copied to pinned memory and back on a stream that nobody waits for.

family: K
problem: k_softmax_scaled
counterpart: k_plain_softmax.py
expect: incorrect or rejected or failed
device: cuda
"""

import torch

SIDE = torch.cuda.Stream()
BUFFERS = {}


def k_softmax_scaled(x):
    y = torch.empty_like(x)
    if x.shape not in BUFFERS:
        BUFFERS[x.shape] = torch.empty(x.shape, dtype=x.dtype, pin_memory=True)
    still = BUFFERS[x.shape]
    with torch.cuda.stream(SIDE):
        still.copy_(torch.softmax(x * 0.5, dim=-1), non_blocking=True)
        y.copy_(still, non_blocking=True)
    return y
