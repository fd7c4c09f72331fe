"""Exact for up to 128 rows, where results are compared; bfloat16 above, where they are timed.

family: D4
problem: matmul_bias_gelu
expect: incorrect
twin: d4_two_paths.py
source: robust-evaluation D4
"""

import torch.nn.functional as F


def matmul_bias_gelu(x, weight, bias):
    if x.shape[0] <= 128:
        return F.gelu(x @ weight + bias)
    return F.gelu((x.bfloat16() @ weight.bfloat16()).float() + bias)
