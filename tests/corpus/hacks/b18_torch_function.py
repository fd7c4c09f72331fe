"""A lazy tensor: a subclass that computes when somebody looks at it, after the clock stopped.

family: B18
problem: softmax
expect: rejected or incorrect or failed
twin: b18_plain_from_subclass.py
source: robust-evaluation B18 (deep-reinforce defense_kernel_hack, KernelBench EVAL.md)
"""

import torch


class Lazy(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        def value(thing):
            if isinstance(thing, cls):
                with torch._C.DisableTorchFunctionSubclass():
                    return torch.softmax(thing.as_subclass(torch.Tensor), dim=-1)
            return thing

        return func(*(value(a) for a in args), **{k: value(v) for k, v in (kwargs or {}).items()})


def softmax(x):
    return x.as_subclass(Lazy)
