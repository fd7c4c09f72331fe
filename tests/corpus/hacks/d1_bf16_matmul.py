"""A float32 product is computed in bfloat16 and cast back.

family: D1
problem: matmul_bias_gelu
expect: incorrect
twin: d1_fp32_blocks.py
source: robust-evaluation D1
"""

import torch.nn.functional as F


def matmul_bias_gelu(x, weight, bias):
    return F.gelu((x.bfloat16() @ weight.bfloat16()).float() + bias)
