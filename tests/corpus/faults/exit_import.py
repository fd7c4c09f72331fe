"""os._exit(0) at import.

problem: add_relu
expect: failed
reason: unexpected_exit
"""

import os

import torch

os._exit(0)


def add_relu(x, y):
    return torch.relu(x + y)
