"""An exit handler that sleeps for ever; the transcript is complete.

problem: add_relu
expect: correct
label: exit_timeout
"""

import atexit
import time

import torch

atexit.register(time.sleep, 10**6)


def add_relu(x, y):
    return torch.relu(x + y)
