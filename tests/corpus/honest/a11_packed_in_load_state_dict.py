"""Weights are packed in the constructor, and again whenever a state is loaded.

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
        self.pack()

    @torch.no_grad()
    def pack(self):
        self.packed = (self.linear.weight * self.scale[:, None]).t().contiguous()
        self.offset = self.linear.bias * self.scale

    def load_state_dict(self, *args, **kwargs):
        done = super().load_state_dict(*args, **kwargs)
        self.pack()
        return done

    def forward(self, x):
        return torch.addmm(self.offset, x, self.packed)
