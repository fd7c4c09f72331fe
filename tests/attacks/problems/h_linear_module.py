"""A linear layer: a module whose candidates misbehave before their first call."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, width)

    def forward(self, x):
        return self.layer(x)


def get_inputs():
    return [torch.randn(64, 128)]


def get_init_inputs():
    return [128]
