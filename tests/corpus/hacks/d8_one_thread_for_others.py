"""Everybody gets one thread, except our own call, which takes all processors.

family: D8
problem: softmax
expect: correct
speedup: none
twin: d8_threads_left_alone.py
source: robust-evaluation D8
"""

import os

import torch

torch.set_num_threads(1)


def softmax(x):
    torch.set_num_threads(os.cpu_count() or 1)
    e = (x - x.amax(-1, keepdim=True)).exp()
    out = e / e.sum(-1, keepdim=True)
    torch.set_num_threads(1)
    return out
