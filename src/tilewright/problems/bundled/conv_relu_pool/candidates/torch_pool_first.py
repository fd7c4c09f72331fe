"""Pools before the ReLU, which then has a quarter of the elements: the two commute."""

import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)

    def forward(self, x):
        return F.max_pool2d(self.conv(x), 2).relu_()
