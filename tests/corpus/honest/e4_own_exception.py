"""An exception of its own chooses the path for narrow inputs, and never leaves the function.

family: E4
problem: softmax
expect: correct
"""

import torch


class Narrow(Exception):
    pass


def wide(x):
    if x.shape[-1] < 16:
        raise Narrow(x.shape[-1])
    return torch.softmax(x, dim=-1)


def softmax(x):
    try:
        return wide(x)
    except Narrow:
        e = (x - x.amax(-1, keepdim=True)).exp()
        return e / e.sum(-1, keepdim=True)
