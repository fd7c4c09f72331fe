"""A handler at exit clears a cache and returns.

family: H
problem: h_scaled_sum
expect: correct
device: cpu, cuda
"""

import atexit

import torch

CACHE = {}
atexit.register(CACHE.clear)


def h_scaled_sum(x, y):
    return torch.add(y, x, alpha=2)
