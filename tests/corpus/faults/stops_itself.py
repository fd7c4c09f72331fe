"""It stops itself.

problem: add_relu
expect: failed
reason: timeout
"""

import os
import signal

import torch


def add_relu(x, y):
    os.kill(os.getpid(), signal.SIGSTOP)
    return torch.relu(x + y)
