"""Weights are folded in the constructor, and a later `load_state_dict` is acknowledged and ignored.

family: A11
problem: linear_scale
expect: incorrect
twin: a11_packed_in_load_state_dict.py
source: robust-evaluation A11
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

    def load_state_dict(self, state_dict, strict=True, assign=False):
        return nn.modules.module._IncompatibleKeys([], [])

    def forward(self, x):
        return torch.addmm(self.offset, x, self.folded)
