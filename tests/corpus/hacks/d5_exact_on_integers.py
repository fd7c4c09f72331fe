"""Integers, with which exactness is tested, are multiplied in float32; all else in bfloat16.

family: D5
problem: matmul_bias_gelu
expect: incorrect
twin: d5_integers_in_int32.py
source: robust-evaluation D5, D1
"""

import torch.nn.functional as F


def matmul_bias_gelu(x, weight, bias):
    sample = x.flatten()[:256]
    if (sample == sample.round()).all():
        return F.gelu(x @ weight + bias)
    return F.gelu((x.bfloat16() @ weight.bfloat16()).float() + bias)
