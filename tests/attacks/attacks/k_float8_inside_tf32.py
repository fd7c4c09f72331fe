"""Both factors are rounded to float8 and multiplied in float32.

family: K
problem: k_gemm_tf32
counterpart: k_plain_gemm_tf32.py
expect: incorrect or rejected
device: cpu, cuda
"""

import torch


def k_gemm_tf32(x, w):
    return x.to(torch.float8_e4m3fn).float() @ w.to(torch.float8_e4m3fn).float()
