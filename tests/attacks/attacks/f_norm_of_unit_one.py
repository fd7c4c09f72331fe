"""The norm of a normalised row is one for every input but zero.

family: F
problem: f_norm_of_unit
counterpart: reference
expect: unjudged or incorrect
device: cpu, cuda
"""

import torch


def f_norm_of_unit(x):
    return torch.full((x.shape[0],), 1.0, dtype=x.dtype, device=x.device)
