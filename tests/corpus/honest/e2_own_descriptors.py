"""A counter of its own open descriptors, as a test against leaks keeps it.

family: E2
problem: softmax
expect: correct
"""

import contextlib
import os

import torch

most = 0


def softmax(x):
    global most
    with contextlib.suppress(OSError):
        most = max(most, len(os.listdir("/proc/self/fd")))
    return torch.softmax(x, dim=-1)
