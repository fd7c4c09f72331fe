"""Each output lies in a new anonymous mapping that asks for huge pages.

family: C
problem: i_affine
expect: correct
device: cpu
"""

import mmap

import torch

KIND = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS


def i_affine(x):
    memory = mmap.mmap(-1, max(x.nbytes, mmap.PAGESIZE), flags=KIND)
    memory.madvise(mmap.MADV_HUGEPAGE)
    y = torch.frombuffer(memory, dtype=x.dtype, count=x.numel()).view(x.shape)
    return torch.mul(x, 3, out=y).add_(1)
