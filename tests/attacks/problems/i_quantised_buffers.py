"""A layer whose quantised weights are buffers, which `load_state_dict` hands on."""

import torch
from torch import nn

BUFFERS = True


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        weight = torch.randint(-127, 128, (width, width), dtype=torch.int8)
        self.register_buffer("weight", weight)
        self.register_buffer("scale", torch.rand(width) / width)

    def forward(self, x):
        return x @ (self.weight.float() * self.scale[:, None]).t()


def get_inputs():
    return [torch.randn(64, 256)]


def get_init_inputs():
    return [256]
