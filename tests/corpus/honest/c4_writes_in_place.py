"""The sum is made in a buffer of the candidate's own and cut off there; its caller is not looked at.

family: C4
problem: add_relu
expect: correct
"""

import torch


def add_relu(x, y):
    out = torch.empty(x.shape, dtype=x.dtype)
    torch.add(x, y, out=out)
    return out.relu_()
