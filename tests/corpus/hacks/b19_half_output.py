"""A half-precision output that compares equal within 1e-2 once somebody casts it.

family: B19
problem: softmax
expect: incorrect
twin: b19_same_dtype.py
source: robust-evaluation B19
"""

import torch


def softmax(x):
    return torch.softmax(x.half(), dim=-1)
