"""A module works through hooks of its own layers.

family: D
problem: mlp
expect: correct
device: cpu, cuda
"""

import torch
from torch import nn


def activate(module, inputs):
    return (torch.nn.functional.gelu(inputs[0]),)


class ModelNew(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.up = nn.Linear(features, hidden)
        self.down = nn.Linear(hidden, features)
        self.down.register_forward_pre_hook(activate)

    def forward(self, x):
        return self.down(self.up(x))
