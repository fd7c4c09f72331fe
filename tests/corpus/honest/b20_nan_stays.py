"""NaN of the mask's empty rows is made by 0 / 0, as the definition has it.

family: B20
problem: masked_softmax
expect: correct
"""

import torch


def masked_softmax(x, mask):
    lowest = torch.finfo(x.dtype).min
    filled = torch.where(mask, x, lowest)
    e = (filled - filled.amax(dim=-1, keepdim=True)).exp_().mul_(mask)
    return e.div_(e.sum(dim=-1, keepdim=True))
