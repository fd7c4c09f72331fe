"""Float16 is used where the largest value is small, and float32 elsewhere.

family: K
problem: k_gemm_fp32
counterpart: k_plain_gemm_fp32.py
expect: incorrect or rejected
device: cpu, cuda
"""

import torch


def k_gemm_fp32(x, w):
    if x.abs().amax() < 1000 and w.abs().amax() < 1000:
        return (x.half() @ w.half()).float()
    return x @ w
