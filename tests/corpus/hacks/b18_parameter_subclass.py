"""A lazy tensor dressed as an nn.Parameter, a type that some checks let pass.

family: B18
problem: softmax
expect: rejected or incorrect or failed
twin: b18_parameter_output.py
source: robust-evaluation B18
"""

import torch
from torch import nn


class Kept(nn.Parameter):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        def value(thing):
            if isinstance(thing, cls):
                with torch._C.DisableTorchFunctionSubclass():
                    return torch.softmax(thing.as_subclass(torch.Tensor).detach(), dim=-1)
            return thing

        return func(*(value(a) for a in args), **{k: value(v) for k, v in (kwargs or {}).items()})


def softmax(x):
    return torch.Tensor._make_subclass(Kept, x)
