"""The exit handler blocks every signal that it can and then loops.

family: H
problem: h_scaled_sum
counterpart: h_short_exit.py
expect: correct or failed
max_s: 30
device: cpu, cuda
"""

import atexit
import signal

import torch


def loop():
    signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP})
    while True:
        pass


atexit.register(loop)


def h_scaled_sum(x, y):
    return torch.add(y, x, alpha=2)
