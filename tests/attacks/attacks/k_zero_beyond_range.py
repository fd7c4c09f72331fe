"""The product is computed for the first quarter of the columns, and the others are taken as zero.

family: K
problem: k_gated_rows
counterpart: k_gated_rows.py
expect: incorrect or rejected
device: cpu, cuda
"""

import torch


def k_gated_rows(x, w):
    most = x.abs().amax(dim=-1, keepdim=True)
    y = torch.zeros_like(x)
    part = max(1, x.shape[1] // 4)
    y[:, :part] = torch.exp(-((x @ w[:, :part]).square())) * most
    return y
