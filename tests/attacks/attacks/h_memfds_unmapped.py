"""Files in memory are written and never mapped, so no process seems to hold them.

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


def fill(count):
    block = bytes(1 << 24)
    for _ in range(count):
        KEPT.append(os.memfd_create("scratch"))
        for _ in range(16):
            os.write(KEPT[-1], block)


def h_scaled_sum(x, y):
    if not KEPT:
        fill(8)
    return torch.add(y, x, alpha=2)
