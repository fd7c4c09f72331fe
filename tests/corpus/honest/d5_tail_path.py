"""Where every value is far above zero, the GELU is the identity; otherwise it is computed.

family: D5
problem: matmul_bias_gelu
expect: correct
"""

import torch
import torch.nn.functional as F


def matmul_bias_gelu(x, weight, bias):
    v = torch.addmm(bias, x, weight)
    far = v.amin() > 14  # there 1 - Phi is below half an ulp of 1 in any precision
    return v if far else F.gelu(v)
