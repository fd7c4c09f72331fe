"""Ten gigabytes of shared anonymous memory, which RLIMIT_DATA does not see.

problem: add_relu
expect: failed
reason: out of memory
"""

import mmap

import torch


def add_relu(x, y):
    waste = mmap.mmap(-1, 10 << 30)
    block = bytes(1 << 20)
    for start in range(0, 10 << 30, 1 << 20):
        waste[start : start + (1 << 20)] = block
    return torch.relu(x + y)
