"""Bytes that are zero or one become a mask without a copy.

family: I
problem: i_mask_output
expect: correct
device: cpu, cuda
"""

import torch


def i_mask_output(x):
    flags = torch.empty(x.shape, dtype=torch.uint8, device=x.device)
    torch.gt(x, 0.5, out=flags.view(torch.bool))
    return flags.view(torch.bool), flags.sum(dim=-1, dtype=torch.int64)
