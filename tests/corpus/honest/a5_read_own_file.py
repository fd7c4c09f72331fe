"""The candidate reads its own source, to name its version.

family: A5
problem: linear_scale
expect: correct
"""

import hashlib

import torch
from torch import nn

with open(__file__, "rb") as file:
    VERSION = hashlib.sha256(file.read()).hexdigest()[:12]


class ModelNew(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.linear = nn.Linear(inner, outer)
        self.scale = nn.Parameter(torch.ones(outer))

    def extra_repr(self):
        return VERSION

    def forward(self, x):
        return self.scale * torch.addmm(self.linear.bias, x, self.linear.weight.t())
