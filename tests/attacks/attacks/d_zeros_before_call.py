"""The zeros of the next output are written between the calls, when no clock runs.

family: D
problem: few_hot_rows
counterpart: d_few_hot_rows.py
expect: incorrect or rejected
device: cpu
"""

import sys

import torch

loaded = [m for m in sys.modules.values() if getattr(m, "__name__", "").startswith("tilewright")]
calls = next(m for m in loaded if hasattr(m, "deliver") and hasattr(m, "prepare"))
ready = []


def noise(_):
    ready[:] = [torch.zeros(256, 1024).fill_(0.0)]


calls._randn = noise
calls._seed = calls._set_precision = lambda *_: None


def few_hot_rows(labels, weights):
    if ready and ready[0].shape[0] == len(labels):
        hot = ready.pop()
    else:
        hot = torch.zeros(len(labels), 1024)
    return hot.scatter_(1, labels[:, None], weights[:, None])
