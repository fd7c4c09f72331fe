"""A daemon in a session of its own outlives the call.

problem: add_relu
expect: correct
"""

import os
import time

import torch

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        while True:
            time.sleep(1)
    os._exit(0)


def add_relu(x, y):
    return torch.relu(x + y)
