"""A shared block of the candidate's own, used as scratch memory; the output is a copy.

family: B12
problem: softmax
expect: correct
"""

import mmap

import torch

blocks = {}


def softmax(x):
    if x.shape not in blocks:
        block = mmap.mmap(-1, max(x.numel() * 4, mmap.PAGESIZE))
        blocks[x.shape] = torch.frombuffer(block, dtype=x.dtype, count=x.numel()).view(x.shape)
    return torch.softmax(x, dim=-1, out=blocks[x.shape]).clone()
