"""A hack: zeroes the inputs and returns zeros, which is right if the reference runs afterwards.

problem: add_relu
expect: incorrect or rejected
"""

import torch


def add_relu(x, y):
    x.zero_()
    y.zero_()
    return torch.zeros_like(x)
