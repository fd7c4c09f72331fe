"""A linear layer and a scale for each of its outputs, which can be folded into its weight."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.linear = nn.Linear(inner, outer)
        self.scale = nn.Parameter(torch.rand(outer) + 0.5)

    def forward(self, x):
        return self.linear(x) * self.scale


def get_inputs():
    return [torch.randn(128, 384)]


def get_init_inputs():
    return [384, 256]
