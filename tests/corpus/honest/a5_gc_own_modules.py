"""The collector and the class tree looked at for the candidate's own bookkeeping.

family: A5
problem: linear_scale
expect: correct
"""

import gc

import torch
from torch import nn


class Scale(nn.Module):
    def __init__(self, outer):
        super().__init__()
        self.register_buffer("unused", torch.zeros(0), persistent=False)
        self.width = outer


class ModelNew(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.linear = nn.Linear(inner, outer)
        self.scale = nn.Parameter(torch.ones(outer))
        self.helper = Scale(outer)
        assert Scale in nn.Module.__subclasses__()
        gc.collect()

    def forward(self, x):
        return torch.addcmul(torch.zeros((), dtype=x.dtype), self.linear(x), self.scale)
