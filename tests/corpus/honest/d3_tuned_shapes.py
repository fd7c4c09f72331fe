"""The published widths have a tuned number of rows a step; every width is computed in full.

family: D3
problem: rmsnorm
expect: correct
"""

import torch

ROWS = {5: 512, 1000: 129, 4096: 64}


def rmsnorm(x, weight):
    rows = ROWS.get(x.shape[-1], 100)
    out = torch.empty_like(x)
    for target, part in zip(out.split(rows), x.split(rows), strict=True):
        mean_square = part.square().mean(-1, keepdim=True)
        torch.mul(part, (mean_square + 1e-6).rsqrt(), out=target).mul_(weight)
    return out
