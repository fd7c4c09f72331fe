"""All modules are forgotten.

problem: add_relu
expect: correct or failed
"""

import sys

import torch

relu = torch.relu
sys.modules.clear()


def add_relu(x, y):
    return relu(x + y)
