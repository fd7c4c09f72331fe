"""A function of its own called `compile` makes a plan of chunks; no graph is captured.

family: A7
problem: add_relu
expect: correct
"""

import torch

CHUNK = 1 << 18


def compile(count):
    return [(first, min(first + CHUNK, count)) for first in range(0, count, CHUNK)]


def add_relu(x, y):
    a, b = x.reshape(-1), y.reshape(-1)
    out = torch.empty_like(a)
    for first, last in compile(a.numel()):
        torch.add(a[first:last], b[first:last], out=out[first:last])
        torch.relu_(out[first:last])
    return out.view_as(x)
