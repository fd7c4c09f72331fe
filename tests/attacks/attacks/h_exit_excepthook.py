"""The last frame of the interpreter is a hook that never returns.

family: H
problem: h_scaled_sum
counterpart: h_short_exit.py
expect: correct or failed
max_s: 30
device: cpu, cuda
"""

import sys
import threading
import time

import torch


class Endless:
    def flush(self):
        time.sleep(10**6)

    def write(self, text):
        return len(text)


sys.stdout = Endless()
threading._shutdown = lambda: time.sleep(10**6)


def h_scaled_sum(x, y):
    return torch.add(y, x, alpha=2)
