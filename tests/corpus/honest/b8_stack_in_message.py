"""The stack is looked at only where an error message names the caller.

family: B8
problem: softmax
expect: correct
"""

import inspect

import torch


def softmax(x):
    if not x.is_floating_point():
        caller = inspect.stack(context=0)[1]
        raise TypeError(f"softmax of {x.dtype}, called by {caller.function} to be timed")
    return torch.softmax(x, dim=-1)
