"""The product runs under autocast, which rounds it to a type of 16 bits.

family: K
problem: k_gemm_fp32
counterpart: k_plain_gemm_fp32.py
expect: incorrect or rejected
device: cpu, cuda
"""

import torch


def k_gemm_fp32(x, w):
    with torch.autocast(x.device.type, dtype=torch.bfloat16):
        return (x @ w).float()
