"""A gigabyte of text on stdout, the work is right.

problem: add_relu
expect: correct
"""

import os

import torch

LINE = b'x' * (1 << 20)
for _ in range(1024):
    os.write(1, LINE)


def add_relu(x, y):
    return torch.relu(x + y)
