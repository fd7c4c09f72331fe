"""Zeros of the allocator, and one copy of all blocks.

family: C
problem: block_diagonal
expect: correct
device: cpu, cuda
"""

import torch


def block_diagonal(blocks):
    count, width = len(blocks), blocks.shape[1]
    whole = torch.zeros(count, width, count, width, device=blocks.device)
    whole.diagonal(dim1=0, dim2=2).copy_(blocks.permute(1, 2, 0))
    return whole.view(count * width, count * width)
