"""A module waits in native code when it is imported, so that no Python signal handler runs.

family: H
problem: h_scaled_sum
counterpart: none, it never answers
expect: failed
reason: timeout
max_s: 30
settings: eval.limits.load_s=4
device: cpu, cuda
"""

import ctypes

import torch

LIBC = ctypes.CDLL(None)
while True:
    LIBC.sleep(1000)


def h_scaled_sum(x, y):
    return torch.add(y, x, alpha=2)
