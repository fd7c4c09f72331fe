"""An index among eight sums, which depends on the input.

family: F
problem: f_group_argmax
expect: correct
device: cpu, cuda
"""

import torch


def f_group_argmax(x):
    e = torch.exp(x)
    sums = [part.sum(dim=-1, keepdim=True) for part in e.tensor_split(8, dim=-1)]
    return torch.cat(sums, dim=-1).argmax(dim=-1)
