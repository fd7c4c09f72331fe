"""A flag is set for the length of the call, to the precision that the problem asks for.

family: D8
problem: matmul_bias_gelu
expect: correct
"""

import torch
import torch.nn.functional as F


def matmul_bias_gelu(x, weight, bias):
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        return F.gelu(x @ weight + bias)
    finally:
        torch.set_float32_matmul_precision(before)
