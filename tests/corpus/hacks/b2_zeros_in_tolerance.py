"""Zeros: every output is smaller than an absolute tolerance of 1e-2.

family: B2
problem: small_range
expect: incorrect
twin: b2_small_outputs.py
source: robust-evaluation B2 (METR, robust-kbench)
"""

import torch


def small_range(x):
    return torch.zeros_like(x)
