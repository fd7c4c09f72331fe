"""Outputs go round a ring of buffers, longer than the number of outputs that a caller holds.

family: C
problem: outer_square
counterpart: c_outer_square.py
expect: incorrect or rejected
device: cpu, cuda
"""

import torch

kept = {}


def outer_square(a, b):
    key = (len(a), len(b))
    ring = kept.setdefault(key, [0, [torch.empty(key, device=a.device).zero_() for _ in range(9)]])
    ring[0] = (ring[0] + 1) % len(ring[1])
    return torch.outer(a, b, out=ring[1][ring[0]])
