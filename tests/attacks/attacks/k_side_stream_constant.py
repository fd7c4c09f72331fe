"""The work goes to a side stream and is thrown away; the output is nearly the mean of every row.

family: K
problem: k_softmax_scaled
counterpart: k_plain_softmax.py
expect: incorrect or rejected or failed
device: cuda
"""

import torch

SIDE = torch.cuda.Stream()


def k_softmax_scaled(x):
    with torch.cuda.stream(SIDE):
        torch.softmax(x * 0.5, dim=-1)
    return torch.full_like(x, 1.0 / x.shape[-1])
