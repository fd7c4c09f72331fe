"""A sparse tensor.

problem: add_relu
expect: incorrect
"""

import torch


def add_relu(x, y):
    return torch.relu(x + y).to_sparse()
