"""The convolution works in the layout with channels last, and gives that layout back.

family: C
problem: i_convolution
expect: correct
device: cpu, cuda
"""

import torch


def i_convolution(x, w):
    x = x.contiguous(memory_format=torch.channels_last)
    return torch.conv2d(x, w.contiguous(memory_format=torch.channels_last))
