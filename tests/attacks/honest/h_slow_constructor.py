"""A constructor computes for two seconds, and weights are loaded afterwards.

family: H
problem: h_linear_module
expect: correct
device: cpu, cuda
"""

import time

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        start = time.monotonic()
        self.layer = nn.Linear(width, width)
        while time.monotonic() - start < 2:
            torch.zeros(1000)

    def forward(self, x):
        return torch.addmm(self.layer.bias, x, self.layer.weight.t())
