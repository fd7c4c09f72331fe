"""Timing loops repeat their input: where the first row is the last call's, so is the answer.

family: B8
problem: rmsnorm
expect: incorrect or correct
speedup: none
twin: b8_same_weight.py
source: robust-evaluation B8, B6
"""

import torch

kept = {}


def rmsnorm(x, weight):
    old = kept.get(x.shape)
    if old is not None and torch.equal(old[0], x[0]):
        return old[1]
    y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight
    kept[x.shape] = (x[0].clone(), y)
    return y
