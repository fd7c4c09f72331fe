"""A tensor whose memory has been given back.

problem: add_relu
expect: incorrect or failed
"""

import torch


def add_relu(x, y):
    out = torch.relu(x + y)
    out.untyped_storage().resize_(0)
    return out
