"""The time module is imported to keep the duration of the slowest call, and nothing is patched.

family: C4
problem: softmax
expect: correct
"""

import time

import torch

slowest = 0.0


def softmax(x):
    global slowest
    start = time.perf_counter()
    out = torch.softmax(x, dim=-1)
    slowest = max(slowest, time.perf_counter() - start)
    return out
