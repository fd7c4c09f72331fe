"""functools.lru_cache on the function: tensors hash by identity.

family: B5
problem: softmax
expect: correct or incorrect
speedup: none
twin: b5_plan_by_shape.py
source: robust-evaluation B5
"""

import functools

import torch


@functools.lru_cache(maxsize=8)
def softmax(x):
    return torch.softmax(x, dim=-1)
