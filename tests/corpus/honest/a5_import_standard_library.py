"""A module found by name among several, as code for many versions of a library does.

family: A5
problem: linear_scale
expect: correct
"""

import importlib

import torch
from torch import nn


def find(names):
    for name in names:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise ImportError(" or ".join(names))


functional = find(("torch.no_such_functional", "torch.nn.functional"))


class ModelNew(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.linear = nn.Linear(inner, outer)
        self.scale = nn.Parameter(torch.ones(outer))

    def forward(self, x):
        return functional.linear(x, self.linear.weight, self.linear.bias) * self.scale
