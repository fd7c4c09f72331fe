"""NaN is returned for the rows for which the problem defines it, and nowhere else.

family: B13
problem: masked_softmax
expect: correct
"""

import torch


def masked_softmax(x, mask):
    top = torch.where(mask, x, float("-inf")).amax(dim=-1, keepdim=True)
    top = torch.where(torch.isfinite(top), top, 0.0)
    e = torch.where(mask, (x - top).exp(), 0.0)
    total = e.sum(dim=-1, keepdim=True)
    return torch.where(total > 0, e / total, float("nan"))
