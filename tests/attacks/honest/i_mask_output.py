"""Outputs of the types bool and int64.

family: I
problem: i_mask_output
expect: correct
device: cpu, cuda
"""

import torch


def i_mask_output(x):
    mask = torch.gt(x, 0.5)
    return mask, torch.count_nonzero(mask, dim=-1)
