"""A clamp that saturates half of the outputs, which is no constant.

family: F
problem: f_min_and_clamp
expect: correct
device: cpu, cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(8, 16, 3)
        self.norm = nn.GroupNorm(8, 16)

    def forward(self, x):
        return self.norm(self.conv(x)).clamp_(0.0, 1.0)
