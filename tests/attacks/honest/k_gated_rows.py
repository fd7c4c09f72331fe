"""All rows are computed, whatever their values.

family: K
problem: k_gated_rows
expect: correct
device: cpu, cuda
"""

import torch


def k_gated_rows(x, w):
    y = torch.mm(x, w)
    return torch.exp(-(y * y)) * x.abs().amax(dim=-1, keepdim=True)
