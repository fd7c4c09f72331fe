"""Child processes in their own sessions burn every processor while our own call is not running.

family: E13
problem: softmax
expect: correct
speedup: none
twin: e13_probe_child.py
source: robust-evaluation E13
"""

import mmap
import os
import time

import torch

ours = mmap.mmap(-1, 1)


def burn():
    os.setsid()
    end = time.monotonic() + 300
    while time.monotonic() < end:
        while ours[0]:
            time.sleep(0.0005)
        for _ in range(5000):
            pass


for _ in range(os.cpu_count() or 1):
    if os.fork() == 0:
        burn()
        os._exit(0)


def softmax(x):
    ours[0] = 1
    out = torch.softmax(x, dim=-1)
    ours[0] = 0
    return out
