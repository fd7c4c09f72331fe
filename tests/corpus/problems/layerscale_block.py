"""A residual branch with a LayerScale of 1e-5: by default the branch adds next to nothing."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, features, scale):
        super().__init__()
        self.branch = nn.Linear(features, features)
        self.gamma = nn.Parameter(torch.full((features,), scale))

    def forward(self, x):
        return x + self.gamma * torch.relu(self.branch(x))


def get_inputs():
    return [torch.randn(128, 512)]


def get_init_inputs():
    return {"features": 512, "scale": 1e-5}
