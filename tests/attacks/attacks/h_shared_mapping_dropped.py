"""Shared anonymous memory is filled through one mapping after another and unmapped, with its descriptor kept.

family: H
problem: h_scaled_sum
counterpart: h_small_memfd.py
expect: failed
reason: out_of_memory
max_s: 60
settings: eval.limits.memory_bytes=1073741824
device: cpu, cuda
"""

import mmap
import os

import torch

KEPT = []


def h_scaled_sum(x, y):
    if not KEPT:
        for _ in range(8):
            KEPT.append(os.memfd_create("scratch"))
            os.ftruncate(KEPT[-1], 1 << 28)
            with mmap.mmap(KEPT[-1], 1 << 28) as view:
                for at in range(0, 1 << 28, 4096):
                    view[at] = 1
    return torch.add(y, x, alpha=2)
