"""A child process in its own session tries an instruction at import, and is waited for.

family: E13
problem: softmax
expect: correct
"""

import mmap
import os

import torch

found = mmap.mmap(-1, 1)
child = os.fork()
if child == 0:
    os.setsid()
    found[0] = sum(range(5000)) > 0
    os._exit(0)
os.waitpid(child, 0)


def softmax(x):
    return torch.softmax(x, dim=-1) if found[0] else (x - x.logsumexp(-1, keepdim=True)).exp()
