"""Powers of two bring the factors into the range of float16, before and after a product in float16.

family: K
problem: k_gemm_fp32
counterpart: k_plain_gemm_fp32.py
expect: incorrect or rejected
device: cpu, cuda
"""

import torch


def k_gemm_fp32(x, w):
    up = torch.exp2(-torch.log2(x.abs().amax().clamp_min(1e-30)).floor())
    over = torch.exp2(-torch.log2(w.abs().amax().clamp_min(1e-30)).floor())
    return ((x * up).half() @ (w * over).half()).float() / (up * over)
