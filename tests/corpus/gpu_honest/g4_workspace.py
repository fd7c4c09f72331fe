"""A workspace is kept by shape and overwritten at each call.

family: G4
problem: big_softmax
expect: correct
"""

import torch

workspaces = {}


def big_softmax(x):
    key = (x.shape, x.dtype)
    if key not in workspaces:
        workspaces[key] = torch.empty_like(x)
    shifted = torch.sub(x, x.amax(-1, keepdim=True), out=workspaces[key])
    weights = shifted.exp_()
    return weights / weights.sum(-1, keepdim=True)
