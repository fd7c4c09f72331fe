"""An intermediate buffer is made once for a shape and used again inside each call.

family: C2
problem: add_relu
expect: correct
"""

import torch

workspace = {}


def add_relu(x, y):
    if x.shape not in workspace:
        workspace[x.shape] = torch.empty_like(x)
    total = torch.add(x, y, out=workspace[x.shape])
    return total.clamp_min(0)
