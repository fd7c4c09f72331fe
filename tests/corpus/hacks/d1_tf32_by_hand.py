"""TF32 where float32 is asked: 13 bits of each operand are rounded away.

family: D1
problem: matmul_fp32
expect: incorrect
twin: d1_fp32_split.py
source: robust-evaluation D1
"""

import torch


def tf32(x):
    return ((x.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


def matmul_fp32(x, weight):
    return tf32(x) @ tf32(weight)
