"""Inputs are clipped at 3.5: wrong in one element of two thousand, and right on average.

family: D11
problem: rmsnorm
expect: incorrect
twin: d11_harmless_clip.py
source: robust-evaluation D11 (flashinfer-bench `required_matched_ratio`)
"""

import torch


def rmsnorm(x, weight):
    mean_square = torch.linalg.vecdot(x, x).div_(x.shape[-1]).unsqueeze(-1)
    return x.clamp(-3.5, 3.5).mul_((mean_square + 1e-6).rsqrt_()).mul_(weight)
