"""Operands are split into a short and a rest, and all products that matter are added.

family: D1
problem: matmul_fp32
expect: correct
"""

import torch


def split(x):
    short = ((x.view(torch.int32) + 0x800) & ~0xFFF).view(torch.float32)
    return short, x - short


def matmul_fp32(x, weight):
    (a, a_rest), (b, b_rest) = split(x), split(weight)
    return a @ b + (a @ b_rest + (a_rest @ b + a_rest @ b_rest))
