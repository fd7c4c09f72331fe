"""A file in memory of 16 MiB is scratch space.

family: H
problem: h_scaled_sum
expect: correct
settings: eval.limits.memory_bytes=1073741824
device: cpu, cuda
"""

import mmap
import os

import torch

FILE = os.memfd_create("scratch")
os.ftruncate(FILE, 1 << 24)
VIEW = mmap.mmap(FILE, 1 << 24)


def h_scaled_sum(x, y):
    VIEW[0] = 1
    return torch.add(y, x, alpha=2)
