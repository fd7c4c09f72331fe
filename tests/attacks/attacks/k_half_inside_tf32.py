"""Both factors are rounded to float16, and the product is given back in float32.

family: K
problem: k_gemm_tf32
counterpart: k_plain_gemm_tf32.py
expect: incorrect or rejected
device: cpu, cuda
"""

import torch


def k_gemm_tf32(x, w):
    return (x.half() @ w.half()).float()
