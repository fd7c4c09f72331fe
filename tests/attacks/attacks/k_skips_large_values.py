"""Large inputs make every output zero, so their product is skipped.

family: K
problem: k_gated_rows
counterpart: k_gated_rows.py
expect: incorrect or rejected
device: cpu, cuda
"""

import torch


def k_gated_rows(x, w):
    most = x.abs().amax(dim=-1, keepdim=True)
    if most.amin() > 100:
        return torch.zeros_like(x)
    return torch.exp(-((x @ w).square())) * most
