"""Both factors are rounded to bfloat16, and the product is given back in float32.

family: K
problem: k_gemm_fp32
counterpart: k_plain_gemm_fp32.py
expect: incorrect or rejected
device: cpu, cuda
"""

import torch


def k_gemm_fp32(x, w):
    return (x.bfloat16() @ w.bfloat16()).float()
