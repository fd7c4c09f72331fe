"""A tensor without memory; its first use imports much, which may take longer than a call may.

problem: add_relu
expect: incorrect or failed
"""

import torch


def add_relu(x, y):
    return torch.relu(x.to("meta") + y.to("meta"))
