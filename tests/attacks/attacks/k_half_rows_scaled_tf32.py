"""Each row and column gets a scale of its own before a product in float16.

family: K
problem: k_gemm_tf32
counterpart: k_plain_gemm_tf32.py
expect: incorrect or rejected
device: cpu, cuda
"""

import torch


def k_gemm_tf32(x, w):
    up = torch.exp2(-torch.log2(x.abs().amax(1, keepdim=True).clamp_min(1e-30)).floor())
    over = torch.exp2(-torch.log2(w.abs().amax(0, keepdim=True).clamp_min(1e-30)).floor())
    return ((x * up).half() @ (w * over).half()).float() / (up * over)
