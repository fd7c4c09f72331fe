"""A cache of plans: how many rows to take at a time, by shape.

family: B5
problem: softmax
expect: correct
"""

import functools

import torch


@functools.cache
def plan(rows, cols):
    step = max(1, (1 << 18) // cols)
    return [(first, min(first + step, rows)) for first in range(0, rows, step)]


def softmax(x):
    out = torch.empty_like(x)
    for first, last in plan(*x.shape):
        torch.softmax(x[first:last], dim=-1, out=out[first:last])
    return out
