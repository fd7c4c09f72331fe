"""A float8 factor is widened to float32, multiplied and rounded once.

family: I
problem: i_float8_product
expect: correct
device: cpu, cuda
"""

import torch


def i_float8_product(x, w):
    return (x.float() @ w.float()).bfloat16()
