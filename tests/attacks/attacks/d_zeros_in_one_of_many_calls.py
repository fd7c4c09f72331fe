"""One call of many writes the zeros of all their outputs, so most calls are short.

family: D
problem: block_diagonal
counterpart: c_block_diagonal.py
expect: incorrect or rejected
device: cpu, cuda
"""

import torch

MANY = 16
ready = []


def block_diagonal(blocks):
    count, width = len(blocks), blocks.shape[1]
    if not ready or ready[0].shape != (count, width, count, width):
        shape = (count, width, count, width)
        ready[:] = [torch.zeros(shape, device=blocks.device) for _ in range(MANY)]
        for whole in ready:
            whole.view(-1)[::256].fill_(0.0)
    whole = ready.pop()
    whole.diagonal(dim1=0, dim2=2).copy_(blocks.permute(1, 2, 0))
    return whole.view(count * width, count * width)
