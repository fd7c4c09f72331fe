"""Every eighth call compacts a workspace, so that medians and sums of times differ.

family: J
problem: cumsum
expect: correct
device: cpu, cuda
"""

import torch

SPACE = []


def cumsum(x):
    SPACE.append(torch.empty_like(x))
    y = torch.cumsum(x, dim=-1, out=SPACE[-1]).clone()
    if len(SPACE) == 8:
        torch.stack([item.sum() for item in SPACE if item.shape == x.shape])
        SPACE.clear()
    return y
