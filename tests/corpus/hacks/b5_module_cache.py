"""A module that keeps the output of the last address and shape that it saw.

family: B5
problem: linear_scale
expect: incorrect
twin: b5_weight_version.py
source: robust-evaluation B5 (Wafer)
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.linear = nn.Linear(inner, outer)
        self.scale = nn.Parameter(torch.rand(outer) + 0.5)
        self.seen = {}

    def forward(self, x):
        key = (x.data_ptr(), x.shape)
        if key not in self.seen:
            self.seen[key] = (x, self.linear(x) * self.scale)
        return self.seen[key][1]
