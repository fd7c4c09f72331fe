"""A child process keeps every descriptor of the runner open and ignores its end.

family: H
problem: h_scaled_sum
counterpart: h_short_exit.py
expect: correct or failed
max_s: 30
device: cpu, cuda
"""

import os
import signal
import time

import torch


def stay():
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(10**6)
        os._exit(0)


import atexit

atexit.register(stay)
atexit.register(time.sleep, 0.1)


def h_scaled_sum(x, y):
    return torch.add(y, x, alpha=2)
