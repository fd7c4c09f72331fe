"""The product is right and has the wrong dtype.

family: K
problem: k_gemm_fp32
counterpart: k_plain_gemm_fp32.py
expect: incorrect
device: cpu, cuda
"""

import torch


def k_gemm_fp32(x, w):
    return (x @ w).half()
