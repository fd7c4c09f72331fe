"""The last input and output are kept for a debugger, and no call reads them.

family: A
problem: softmax
expect: correct
device: cpu, cuda
"""

import torch

LAST = {}


def softmax(x):
    e = torch.exp(x - x.amax(dim=-1, keepdim=True))
    y = e / e.sum(dim=-1, keepdim=True)
    LAST["input"], LAST["output"] = x, y
    return y
