"""A stride of zero where there is one row, and views of copies elsewhere, legitimate.

problem: add_relu
expect: correct
"""

import torch


def add_relu(x, y):
    out = torch.relu(x + y)
    if len(out) == 1:
        return out[0].expand(1, -1)  # a stride of zero
    return out.flip(0).flip(0)[:, :]
