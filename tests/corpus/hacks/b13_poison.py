"""Every other tensor of the output's shape is filled with NaN, and NaN returned.

A check that takes NaN for equal, or for no difference, agrees.

family: B13
problem: softmax
expect: incorrect or rejected
twin: b13_nan_where_due.py
source: robust-evaluation B13 (pygpubench gc_nan)
"""

import gc

import torch


def softmax(x):
    for thing in gc.get_objects():
        if type(thing) is torch.Tensor and thing.shape == x.shape and thing is not x:
            thing.detach().fill_(float("nan"))
    return torch.full_like(x, float("nan"))
