"""A child in its own session counts processors at import; it ends, and is waited for.

family: E10
problem: softmax
expect: correct
"""

import os
import signal

import torch

child = os.fork()
if child == 0:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.setsid()
    os._exit(min(100, os.cpu_count() or 1))
THREADS = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def softmax(x):
    rows = max(1, x.shape[0] // THREADS)
    return torch.cat([torch.softmax(part, dim=-1) for part in x.split(rows)])
