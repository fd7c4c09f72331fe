"""Every call takes 64 MB of scratch and gives it back.

family: E11
problem: softmax
expect: correct
"""

import torch


def softmax(x):
    scratch = torch.empty(max(1 << 24, x.numel()))
    e = scratch[: x.numel()].view(x.shape)
    torch.sub(x, x.amax(-1, keepdim=True), out=e)
    e.exp_()
    return e / e.sum(-1, keepdim=True)
