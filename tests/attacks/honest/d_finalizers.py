"""Finalizers, a collector callback and an exit handler count what the candidate freed.

family: D
problem: conv_relu_pool
expect: correct
device: cpu, cuda
"""

import atexit
import gc
import weakref

import torch
from torch import nn

FREED = []


def collected(phase, info):
    if phase == "stop" and len(FREED) > 100:
        FREED.clear()


gc.callbacks.append(collected)
atexit.register(FREED.clear)


class Plan:
    def __init__(self, shape):
        self.shape = shape
        weakref.finalize(self, FREED.append, shape)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)

    def forward(self, x):
        plan = Plan(tuple(x.shape))
        y = torch.max_pool2d(self.conv(x), 2)
        assert plan.shape == tuple(x.shape)
        return torch.relu_(y)
