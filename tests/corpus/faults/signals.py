"""Signals to everybody that it can name.

problem: add_relu
expect: correct
"""

import contextlib
import os
import signal

import torch

for pid in (1, os.getppid(), -os.getppid()):
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP):
        with contextlib.suppress(OSError):
            if pid not in (0, -1):
                os.kill(pid, number)


def add_relu(x, y):
    return torch.relu(x + y)
