"""Softmax in float16, cast back: every output is within 1e-2.

family: D1
problem: softmax
expect: incorrect
twin: d1_double_softmax.py
source: robust-evaluation D1
"""

import torch


def softmax(x):
    return torch.softmax(x.half(), dim=-1).float()
