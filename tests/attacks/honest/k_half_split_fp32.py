"""Each factor is the sum of parts that are exact in bfloat16, and all large products are kept.

family: K
problem: k_gemm_fp32
expect: correct
device: cpu, cuda
"""

import torch


def parts(x):
    first = x.bfloat16().float()
    second = (x - first).bfloat16().float()
    return first, second, x - first - second


def k_gemm_fp32(x, w):
    a, b = parts(x), parts(w)
    small = a[2] @ b[0] + a[1] @ b[1] + a[0] @ b[2]
    return (small + (a[1] @ b[0] + a[0] @ b[1])) + a[0] @ b[0]
