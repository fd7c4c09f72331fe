"""It deletes its own source.

problem: add_relu
expect: correct
"""

import contextlib
import os
import shutil

import torch

with contextlib.suppress(OSError):
    shutil.rmtree(os.path.dirname(__file__))


def add_relu(x, y):
    return torch.relu(x + y)
