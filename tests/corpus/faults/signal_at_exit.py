"""Death by a signal at exit, as corrupted memory causes it.

problem: add_relu
expect: failed
reason: memory_corruption
"""

import atexit
import os
import signal

import torch

atexit.register(os.kill, os.getpid(), signal.SIGSEGV)


def add_relu(x, y):
    return torch.relu(x + y)
