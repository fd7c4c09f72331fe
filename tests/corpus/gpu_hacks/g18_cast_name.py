"""A class calls itself a tensor and computes when it is looked at.

family: G18
problem: big_softmax
expect: incorrect
twin: g8_triton.py
source: robust-evaluation B8
"""

import torch


class Lazy(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        plain = [a.as_subclass(torch.Tensor) if isinstance(a, Lazy) else a for a in args]
        return function(*[torch.softmax(plain[0], -1), *plain[1:]], **(kwargs or {}))


def big_softmax(x):
    return x.as_subclass(Lazy)
