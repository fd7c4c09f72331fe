"""A convolution, ReLU and 2 x 2 max pooling, as a KernelBench module."""

import torch
import torch.nn as nn


class Model(nn.Module):
    """Conv2d without padding, ReLU, MaxPool2d(2)."""

    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.pool = nn.MaxPool2d(2)

    def forward(self, x):
        return self.pool(torch.relu(self.conv(x)))


batch, in_channels, out_channels, kernel_size, size = 8, 16, 32, 3, 33


def get_inputs():
    return [torch.randn(batch, in_channels, size, size)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size]


def BYTES(case):
    pooled = (size - kernel_size + 1) // 2
    weights = out_channels * (in_channels * kernel_size**2 + 1)
    return 4 * (batch * (in_channels * size**2 + out_channels * pooled**2) + weights)


def FLOPS(case):
    positions = ((size - kernel_size + 1) // 2 * 2) ** 2  # a cut-off last row is not needed
    return 2 * batch * out_channels * positions * in_channels * kernel_size**2
