"""It closes every descriptor that it can.

problem: add_relu
expect: failed
reason: unexpected_exit
"""

import os

import torch


def add_relu(x, y):
    os.closerange(0, 4096)
    return torch.relu(x + y)
