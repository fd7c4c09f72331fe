"""A thread that is no daemon never ends, so the interpreter waits for it.

family: H
problem: h_scaled_sum
counterpart: h_short_exit.py
expect: correct or failed
max_s: 30
device: cpu, cuda
"""

import threading
import time

import torch

threading.Thread(target=time.sleep, args=(10**6,), daemon=False).start()


def h_scaled_sum(x, y):
    return torch.add(y, x, alpha=2)
