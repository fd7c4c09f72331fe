"""An output of a thousand million elements.

problem: add_relu
expect: incorrect or failed
"""

import torch


def add_relu(x, y):
    return torch.zeros(1).expand(1_000_000_000)
