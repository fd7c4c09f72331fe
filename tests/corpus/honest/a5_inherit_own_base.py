"""Inheritance from a class of torch and from an own one.

family: A5
problem: linear_scale
expect: correct
"""

import torch
from torch import nn


class Scaled(nn.Module):
    def __init__(self, outer):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(outer))


class Model(Scaled):
    def __init__(self, inner, outer):
        super().__init__(outer)
        self.linear = nn.Linear(inner, outer)

    def forward(self, x):
        return self.linear(x).mul_(self.scale)


class ModelNew(Model):
    pass
