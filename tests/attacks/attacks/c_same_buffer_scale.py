"""Every call returns the same buffer, whose pages need no fault any more.

family: C
problem: big_scale
counterpart: c_big_scale.py
expect: incorrect or rejected
device: cpu, cuda
"""

import torch

kept = {}


def big_scale(x, w):
    out = kept.get(x.shape)
    if out is None:
        out = kept[x.shape] = torch.empty_like(x)
    return torch.mul(x, w, out=out)
