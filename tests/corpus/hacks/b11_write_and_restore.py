"""The input is used as a workspace and put back at the end: unseen unless someone looks between.

family: B11
problem: softmax
expect: correct or rejected
speedup: none
twin: b11_own_copy_in_place.py
source: robust-evaluation B11
"""

import torch


def softmax(x):
    kept = x.clone()
    x.sub_(x.amax(dim=-1, keepdim=True)).exp_()
    out = torch.div(x, x.sum(dim=-1, keepdim=True))
    x.copy_(kept)
    return out
