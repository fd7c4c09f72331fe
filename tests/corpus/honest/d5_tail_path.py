"""Where every value is far from zero, the GELU is the identity or zero; otherwise it is computed.

family: D5
problem: matmul_bias_gelu
expect: correct
"""

import torch
import torch.nn.functional as F


def matmul_bias_gelu(x, weight, bias):
    v = torch.addmm(bias, x, weight)
    if v.abs().amin() > 14:  # exp(-98) is below the smallest normal float32
        return v.clamp(min=0)
    return F.gelu(v)
