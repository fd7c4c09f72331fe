"""Few rows in one product, many rows in blocks: both in float32.

family: D4
problem: matmul_bias_gelu
expect: correct
"""

import torch
import torch.nn.functional as F


def matmul_bias_gelu(x, weight, bias):
    if x.shape[0] <= 128:
        return F.gelu(x @ weight + bias)
    return torch.cat([F.gelu(torch.addmm(bias, part, weight)) for part in x.split(128)])
