"""A thousand outputs instead of one.

problem: add_relu
expect: incorrect or failed
"""

import torch


def add_relu(x, y):
    return [torch.relu(x + y)] * 1000
