"""Rows of zeros are skipped, where the product is zero for every weight.

family: K
problem: k_gated_rows
expect: correct
device: cpu, cuda
"""

import torch


def k_gated_rows(x, w):
    largest = x.abs().amax(dim=-1, keepdim=True)
    used = largest[:, 0].nonzero()[:, 0]
    out = torch.zeros(x.shape[0], w.shape[1], device=x.device)
    out[used] = torch.exp(-torch.mm(x[used], w).square_()) * largest[used]
    return out
