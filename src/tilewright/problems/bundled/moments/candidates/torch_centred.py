"""The mean first, then the mean square about it: plain reductions that vectorise well."""

import torch


def moments(x):
    mean = x.mean(dim=-1)
    variance = torch.square(x - mean.unsqueeze(-1)).mean(dim=-1)
    return mean, variance, x.amax(dim=-1)
