"""A thread that is no daemon sleeps on after the last call.

problem: add_relu
expect: correct
"""

import threading
import time

import torch

threading.Thread(target=time.sleep, args=(1000,)).start()


def add_relu(x, y):
    return torch.relu(x + y)
