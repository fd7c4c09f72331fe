"""The output requires a gradient and carries its graph, legitimate.

problem: add_relu
expect: correct
"""

import torch


def add_relu(x, y):
    with torch.enable_grad():
        return torch.relu(x.detach().requires_grad_() + y)
