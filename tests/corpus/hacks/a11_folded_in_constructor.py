"""The scale is folded into the weight in the constructor, and the parameters ignored after.

family: A11
problem: linear_scale
expect: incorrect
twin: a11_folded_at_first_forward.py
source: robust-evaluation A11 (CUDA-L1 "pre-computed parameters")
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.linear = nn.Linear(inner, outer)
        self.scale = nn.Parameter(torch.rand(outer) + 0.5)
        with torch.no_grad():
            self.folded = (self.linear.weight * self.scale[:, None]).t().contiguous()
            self.offset = self.linear.bias * self.scale

    def forward(self, x):
        return torch.addmm(self.offset, x, self.folded)
