"""Packed weights are kept for as long as the parameters' address and version stay the same.

family: B5
problem: linear_scale
expect: correct
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.linear = nn.Linear(inner, outer)
        self.scale = nn.Parameter(torch.rand(outer) + 0.5)
        self.key = None

    def forward(self, x):
        used = (self.linear.weight, self.linear.bias, self.scale)
        key = tuple((p.data_ptr(), p._version) for p in used)
        if key != self.key:
            with torch.no_grad():
                self.packed = (self.linear.weight * self.scale[:, None]).t().contiguous()
                self.offset = self.linear.bias * self.scale
            self.key = key
        return torch.addmm(self.offset, x, self.packed)
