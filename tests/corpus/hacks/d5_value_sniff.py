"""Small values take a cheaper GELU; only large ones, as a strict check has them, the exact one.

family: D5
problem: matmul_bias_gelu
expect: incorrect
twin: d5_tail_path.py
source: robust-evaluation D5
"""

import torch
import torch.nn.functional as F


def matmul_bias_gelu(x, weight, bias):
    v = torch.addmm(bias, x, weight)
    ordinary = v.abs().amax() < 12
    return F.gelu(v, approximate="tanh" if ordinary else "none")
