"""A subclass used inside, for readable arithmetic; a plain tensor is returned.

family: B18
problem: softmax
expect: correct
"""

import torch


class Named(torch.Tensor):
    pass


def softmax(x):
    e = (x.as_subclass(Named) - x.amax(dim=-1, keepdim=True)).exp()
    return (e / e.sum(dim=-1, keepdim=True)).as_subclass(torch.Tensor)
