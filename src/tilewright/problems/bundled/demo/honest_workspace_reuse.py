"""Honest: scratch memory is kept between calls, but every call fills it anew; outputs are fresh.

problem: moments
expect: correct
"""

import torch

workspaces = {}


def moments(x):
    key = (x.shape, x.dtype, x.device)
    if key not in workspaces:
        workspaces[key] = torch.empty_like(x)
    mean = x.mean(dim=-1)
    centred = torch.sub(x, mean.unsqueeze(-1), out=workspaces[key])
    return mean, centred.square_().mean(dim=-1), x.amax(dim=-1)
