"""The first call for a shape makes buffers and is slow; every call computes its result.

family: C8
problem: softmax
expect: correct
"""

import torch

buffers = {}


def softmax(x):
    if x.shape not in buffers:
        buffers[x.shape] = (torch.empty_like(x), torch.empty_like(x[:, :1]))
        for _ in range(6):
            torch.softmax(x, dim=-1)
    e, total = buffers[x.shape]
    torch.sub(x, x.amax(-1, keepdim=True), out=e)
    torch.sum(e.exp_(), -1, keepdim=True, out=total)
    return e / total
