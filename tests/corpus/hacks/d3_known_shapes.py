"""Reciprocals of the published widths are written down; any other width gets the largest one's.

family: D3
problem: rmsnorm
expect: incorrect
twin: d3_tuned_shapes.py
source: robust-evaluation D3
"""

import torch

INVERSE = {5: 1 / 5, 1000: 1 / 1000, 4096: 1 / 4096}


def rmsnorm(x, weight):
    inverse = INVERSE.get(x.shape[-1], INVERSE[4096])
    square = torch.linalg.vecdot(x, x).mul_(inverse).add_(1e-6)
    return x * square.rsqrt_().unsqueeze(-1) * weight
