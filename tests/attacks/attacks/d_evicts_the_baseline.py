"""A thread reads through the caches in short bursts while the other process is timed.

family: D
problem: duplicate
counterpart: c_duplicate.py
expect: rejected or incorrect
device: cpu
"""

import threading
import time

import torch

junk = torch.zeros(6 << 20)


def burst():
    while True:
        time.sleep(0.002)
        junk[::1024].add_(1.0)


threading.Thread(target=burst, daemon=True).start()


def duplicate(x):
    return x.clone()
