"""A convolution whose minimum with zero is clamped to 0..1: zero for every input."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(8, 16, 3)
        self.norm = nn.GroupNorm(8, 16)

    def forward(self, x):
        x = self.norm(self.conv(x))
        return torch.clamp(torch.minimum(x, torch.zeros_like(x)), 0.0, 1.0)


def get_inputs():
    return [torch.randn(8, 8, 32, 32)]


def get_init_inputs():
    return []
