"""A scratch of 64 MB is made once; calls write their intermediate into it, and nobody else does.

family: E13
problem: softmax
expect: correct
"""

import torch

scratch = torch.empty(1 << 24)


def softmax(x):
    if x.numel() > scratch.numel():
        return torch.softmax(x, dim=-1)
    e = scratch[: x.numel()].view(x.shape)
    torch.sub(x, x.amax(-1, keepdim=True), out=e)
    e.exp_()
    return e / e.sum(-1, keepdim=True)
