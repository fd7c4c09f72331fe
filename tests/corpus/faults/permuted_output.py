"""A strided output, legitimate.

problem: add_relu
expect: correct
"""

import torch


def add_relu(x, y):
    return torch.relu(x.T + y.T).contiguous().T
