"""Signal 15 to every process that it may reach.

problem: add_relu
expect: failed or correct
"""

import contextlib
import os
import signal

import torch


def add_relu(x, y):
    with contextlib.suppress(OSError):
        os.kill(-1, signal.SIGTERM)
    return torch.relu(x + y)
