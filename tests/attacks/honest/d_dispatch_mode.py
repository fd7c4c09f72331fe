"""A dispatch mode of the candidate sees its own operators and counts them.

family: D
problem: mlp
expect: correct
device: cpu, cuda
"""

import collections

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

COUNTS = collections.Counter()


class Counting(TorchDispatchMode):
    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        COUNTS[str(operator)] += 1
        return operator(*args, **(kwargs or {}))


class ModelNew(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.up = nn.Linear(features, hidden)
        self.down = nn.Linear(hidden, features)

    def forward(self, x):
        with torch.no_grad(), Counting():
            return self.down(torch.nn.functional.gelu(self.up(x)))
