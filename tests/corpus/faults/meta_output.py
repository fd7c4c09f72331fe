"""A tensor without memory.

problem: add_relu
expect: incorrect
"""

import torch


def add_relu(x, y):
    return torch.relu(x.to("meta") + y.to("meta"))
