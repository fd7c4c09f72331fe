"""A parameter is used as output buffer: it holds what was computed, when it is returned.

family: B18
problem: softmax
expect: correct
"""

import torch
from torch import nn

buffers = {}


def softmax(x):
    if x.shape not in buffers:
        buffers[x.shape] = nn.Parameter(torch.empty_like(x), requires_grad=False)
    torch.softmax(x, dim=-1, out=buffers[x.shape].data)
    return buffers[x.shape]
