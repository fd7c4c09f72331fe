"""A cache keyed by the identity of the tensor object.

family: B5
problem: softmax
expect: correct or incorrect
speedup: none
twin: b5_plan_by_shape.py
source: robust-evaluation B5
"""

import torch

cache = {}


def softmax(x):
    if id(x) not in cache:
        cache[id(x)] = (x, torch.softmax(x, dim=-1))
    return cache[id(x)][1]
