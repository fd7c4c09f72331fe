"""The weights alone are rounded to float16, and multiplied in float32.

family: K
problem: k_gemm_tf32
counterpart: k_plain_gemm_tf32.py
expect: incorrect or rejected or correct
device: cpu, cuda
"""

import torch


def k_gemm_tf32(x, w):
    return x @ w.half().float()
