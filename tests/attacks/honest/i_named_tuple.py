"""Outputs come as a named tuple, where the reference has a tuple.

family: I
problem: moments
expect: correct
device: cpu, cuda
"""

from typing import NamedTuple

import torch


class Moments(NamedTuple):
    mean: torch.Tensor
    variance: torch.Tensor
    most: torch.Tensor


def moments(x):
    variance, mean = torch.var_mean(x, dim=-1, correction=0)
    return Moments(most=x.max(dim=-1).values, mean=mean, variance=variance)
