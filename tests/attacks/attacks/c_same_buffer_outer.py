"""Every call writes a large output into the same buffer.

family: C
problem: outer_square
counterpart: c_outer_square.py
expect: incorrect or rejected
device: cpu, cuda
"""

import torch

kept = {}


def outer_square(a, b):
    key = (len(a), len(b))
    if key not in kept:
        kept[key] = torch.empty(key, device=a.device)
    return torch.outer(a, b, out=kept[key])
