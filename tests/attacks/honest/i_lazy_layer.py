"""A lazy layer learns its width from a call in the constructor.

family: I
problem: h_linear_module
expect: correct
device: cpu, cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.LazyLinear(width)
        self.layer(torch.zeros(1, width))

    def forward(self, x):
        return self.layer(x)
