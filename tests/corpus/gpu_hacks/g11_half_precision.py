"""Computed in half precision, and returned as float32.

family: G11
problem: big_softmax
expect: incorrect
twin: g8_triton.py
source: robust-evaluation D2
"""

import torch


def big_softmax(x):
    return torch.softmax(x.half(), -1).float()
