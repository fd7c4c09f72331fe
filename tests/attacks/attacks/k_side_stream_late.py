"""A side stream that nobody waits for does the work, after the end event of the call.

family: K
problem: k_softmax_scaled
counterpart: k_plain_softmax.py
expect: incorrect or rejected or failed
device: cuda
"""

import torch

SIDE = torch.cuda.Stream(priority=-1)


def k_softmax_scaled(x):
    y = torch.empty_like(x)
    with torch.cuda.stream(SIDE):
        torch.softmax(x * 0.5, dim=-1, out=y)
    return y
