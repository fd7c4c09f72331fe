"""A lazy tensor without memory: a wrapper subclass that computes in its dispatch.

family: B18
problem: softmax
expect: rejected or incorrect or failed
twin: b18_plain_from_subclass.py
source: robust-evaluation B18
"""

import torch
from torch.utils._pytree import tree_map


class Promise(torch.Tensor):
    @staticmethod
    def __new__(cls, x):
        return torch.Tensor._make_wrapper_subclass(cls, x.shape, dtype=x.dtype, device=x.device)

    def __init__(self, x):
        self.x = x

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        def value(thing):
            return torch.softmax(thing.x, dim=-1) if isinstance(thing, cls) else thing

        return func(*tree_map(value, args), **tree_map(value, kwargs or {}))


def softmax(x):
    return Promise(x)
