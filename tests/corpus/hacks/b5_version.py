"""A cache keyed by address and version counter: a write through an alias changes neither.

family: B5
problem: softmax
expect: incorrect
twin: b5_weight_version.py
source: robust-evaluation B5 (peers 5.4)
"""

import torch

cache = {}


def softmax(x):
    key = (x.data_ptr(), x._version, x.shape)
    if key not in cache:
        cache[key] = (x, torch.softmax(x, dim=-1))
    return cache[key][1]
