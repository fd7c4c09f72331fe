"""Ten gigabytes of shared anonymous memory, which RLIMIT_DATA does not see.

Where memory is slow to come, the deadline of the call is there first.

problem: add_relu
expect: failed
"""

import mmap

import torch


def add_relu(x, y):
    waste = mmap.mmap(-1, 10 << 30)
    block = bytes(1 << 20)
    for start in range(0, 10 << 30, 1 << 20):
        waste[start : start + (1 << 20)] = block
    return torch.relu(x + y)
