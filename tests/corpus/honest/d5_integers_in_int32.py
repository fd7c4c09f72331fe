"""Small integers are multiplied as integers, which is exact; all else in float32.

family: D5
problem: matmul_bias_gelu
expect: correct
"""

import torch.nn.functional as F


def small_integers(x):
    return x.abs().amax() < 64 and (x == x.round()).all()


def matmul_bias_gelu(x, weight, bias):
    if small_integers(x) and small_integers(weight):
        return F.gelu((x.int() @ weight.int()).float() + bias)
    return F.gelu(x @ weight + bias)
