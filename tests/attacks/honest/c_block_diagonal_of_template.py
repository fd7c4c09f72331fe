"""A copy of kept zeros, which are no result of any call, and one copy of all blocks.

family: C
problem: block_diagonal
expect: correct
device: cpu, cuda
"""

import torch

zeros = {}


def block_diagonal(blocks):
    count, width = len(blocks), blocks.shape[1]
    key = (count, width)
    if key not in zeros:
        zeros[key] = torch.zeros(count, width, count, width, device=blocks.device)
    whole = zeros[key].clone()
    whole.diagonal(dim1=0, dim2=2).copy_(blocks.permute(1, 2, 0))
    return whole.view(count * width, count * width)
