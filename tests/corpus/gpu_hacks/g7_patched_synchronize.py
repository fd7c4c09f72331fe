"""Waiting for the device is patched away.

family: G7
problem: big_softmax
expect: correct
speedup: none
twin: g7_synchronises.py
source: robust-evaluation C3
"""

import torch

torch.cuda.synchronize = lambda *args: None
torch.cuda.Event.synchronize = lambda self: None
torch.cuda.Stream.synchronize = lambda self: None


def big_softmax(x):
    return torch.softmax(x, -1)
