"""Bytes that are no text, and orders to a terminal, on stdout and stderr.

problem: add_relu
expect: correct
"""

import os

import torch

for descriptor in (1, 2):
    os.write(descriptor, bytes(range(256)) * 16 + b"\x1b]0;owned\x07\x1b[2J\n")


def add_relu(x, y):
    return torch.relu(x + y)
