"""Right values in float64.

problem: add_relu
expect: incorrect
"""

import torch


def add_relu(x, y):
    return torch.relu(x.double() + y.double())
