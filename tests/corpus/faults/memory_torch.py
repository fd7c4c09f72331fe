"""Ten gigabytes from torch.

problem: add_relu
expect: failed
reason: out_of_memory
"""

import torch


def add_relu(x, y):
    waste = torch.ones(10 << 30, dtype=torch.uint8)
    return torch.relu(x + y) + waste[0] * 0
