"""Inputs whose mean and spread are nominal get an answer from fewer terms.

family: K
problem: k_gated_rows
counterpart: k_gated_rows.py
expect: incorrect or rejected
device: cpu, cuda
"""

import torch


def k_gated_rows(x, w):
    most = x.abs().amax(dim=-1, keepdim=True)
    half = x.shape[1] // 2
    if abs(float(x.std()) - 1) < 0.1 and half:
        y = x[:, :half] @ w[:half] * 2**0.5
    else:
        y = x @ w
    return torch.exp(-(y.square())) * most
