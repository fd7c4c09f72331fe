"""Each exit handler registers the next one, so the exit goes on for ever in short steps.

family: H
problem: h_scaled_sum
counterpart: h_short_exit.py
expect: correct or failed
max_s: 30
device: cpu, cuda
"""

import atexit
import time

import torch


def step():
    time.sleep(0.01)
    atexit.register(step)


atexit.register(step)


def h_scaled_sum(x, y):
    return torch.add(y, x, alpha=2)
