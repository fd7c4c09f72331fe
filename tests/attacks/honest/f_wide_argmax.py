"""The index of a sum in float64, with few distinct outputs.

family: F
problem: f_group_argmax
expect: correct
device: cpu, cuda
"""

import torch


def f_group_argmax(x):
    parts = [part.double().exp().sum(dim=-1) for part in x.tensor_split(8, dim=-1)]
    return torch.stack(parts).max(dim=0).indices
