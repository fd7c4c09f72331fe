"""A hack: returns memory that nothing has filled yet; a thread does the work after the clock.

problem: cumsum
expect: incorrect
"""

import threading
import time

import torch


def fill(x, y):
    time.sleep(0.005)
    torch.cumsum(x, dim=-1, out=y)


def cumsum(x):
    y = torch.empty_like(x)
    threading.Thread(target=fill, args=(x.clone(), y), daemon=True).start()
    return y
