"""A product in float64 that is rounded once.

family: K
problem: k_gemm_tf32
expect: correct
device: cpu, cuda
"""

import torch


def k_gemm_tf32(x, w):
    return (x.double() @ w.double()).float()
