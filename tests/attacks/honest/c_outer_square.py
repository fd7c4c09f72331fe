"""An outer product in memory of the allocator.

family: C
problem: outer_square
expect: correct
device: cpu, cuda
"""

import torch


def outer_square(a, b):
    return torch.outer(a, b)
