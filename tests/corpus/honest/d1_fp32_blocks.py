"""A float32 product in blocks of the inner dimension, added in another order than the reference.

family: D1
problem: matmul_bias_gelu
expect: correct
"""

import torch
import torch.nn.functional as F


def matmul_bias_gelu(x, weight, bias):
    total = bias.expand(x.shape[0], -1).contiguous()
    for first in range(0, x.shape[1], 128):
        total = torch.addmm(total, x[:, first : first + 128], weight[first : first + 128])
    return F.gelu(total)
