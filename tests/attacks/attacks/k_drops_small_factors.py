"""Factors below a quarter of the largest are dropped, and the product has fewer terms.

family: K
problem: k_gated_rows
counterpart: k_gated_rows.py
expect: incorrect or rejected
device: cpu, cuda
"""

import torch


def k_gated_rows(x, w):
    most = x.abs().amax(dim=-1, keepdim=True)
    kept = x.abs().amax(dim=0) > 0.9 * most.amax()
    y = x[:, kept] @ w[kept]
    return torch.exp(-(y.square())) * most
