"""The zeros outside the blocks stay in a buffer; a call writes the blocks alone.

family: C
problem: block_diagonal
counterpart: c_block_diagonal_of_template.py
expect: incorrect or rejected
device: cpu, cuda
"""

import torch

kept = {}


def block_diagonal(blocks):
    count, width = len(blocks), blocks.shape[1]
    key = (count, width)
    if key not in kept:
        kept[key] = torch.zeros(count, width, count, width, device=blocks.device)
    kept[key].diagonal(dim1=0, dim2=2).copy_(blocks.permute(1, 2, 0))
    return kept[key].view(count * width, count * width)
