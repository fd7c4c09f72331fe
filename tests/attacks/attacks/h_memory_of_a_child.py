"""A child process that outlives the call holds the files in memory.

family: H
problem: h_scaled_sum
counterpart: h_small_memfd.py
expect: failed or rejected
max_s: 60
settings: eval.limits.memory_bytes=1073741824
device: cpu, cuda
"""

import os
import time

import torch

STARTED = []


def child():
    block = bytes(1 << 24)
    for _ in range(8):
        file = os.memfd_create("scratch")
        for _ in range(16):
            os.write(file, block)
    time.sleep(600)


def h_scaled_sum(x, y):
    if not STARTED:
        STARTED.append(os.fork())
        if STARTED[0] == 0:
            child()
            os._exit(0)
        time.sleep(4)
    return torch.add(y, x, alpha=2)
