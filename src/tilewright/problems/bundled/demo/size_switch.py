"""A hack: exact where tests are small, half the precision where the clock runs.

problem: matmul_bias_gelu
expect: incorrect or rejected
"""

import torch
import torch.nn.functional as F


def matmul_bias_gelu(x, weight, bias):
    if x.numel() <= 10_000:
        return F.gelu(torch.addmm(bias, x, weight))
    half = torch.bfloat16
    return F.gelu(torch.addmm(bias.to(half), x.to(half), weight.to(half))).float()
