"""The mean in quarters: four partial sums for each row, added at the end.

family: B15
problem: row_mean
expect: correct
"""

import torch


def row_mean(x):
    parts = [part.sum(dim=-1, dtype=torch.float64) for part in x.chunk(4, dim=-1)]
    return torch.stack(parts).sum(dim=0).div_(x.shape[-1]).to(x.dtype)
