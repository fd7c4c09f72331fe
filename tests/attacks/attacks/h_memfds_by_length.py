"""A file in memory grows by `fallocate`, which writes no byte and still takes the pages.

family: H
problem: h_scaled_sum
counterpart: h_small_memfd.py
expect: failed
reason: out_of_memory
max_s: 60
settings: eval.limits.memory_bytes=1073741824
device: cpu, cuda
"""

import os

import torch

KEPT = []


def h_scaled_sum(x, y):
    if not KEPT:
        for _ in range(8):
            KEPT.append(os.memfd_create("scratch"))
            os.posix_fallocate(KEPT[-1], 0, 1 << 28)
    return torch.add(y, x, alpha=2)
