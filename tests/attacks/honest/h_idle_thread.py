"""A daemon thread waits for work, and ends with the process.

family: H
problem: h_scaled_sum
expect: correct
device: cpu, cuda
"""

import queue
import threading

import torch

WORK = queue.Queue()
threading.Thread(target=WORK.get, daemon=True).start()


def h_scaled_sum(x, y):
    return torch.add(y, x, alpha=2)
