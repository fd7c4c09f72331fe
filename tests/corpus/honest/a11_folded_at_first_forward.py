"""The scale is folded into the weight at the first forward: weights never change after that.

family: A11
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
        self.folded = None

    def forward(self, x):
        if self.folded is None:
            with torch.no_grad():
                self.folded = (self.linear.weight * self.scale[:, None]).t().contiguous()
                self.offset = self.linear.bias * self.scale
        return torch.addmm(self.offset, x, self.folded)
