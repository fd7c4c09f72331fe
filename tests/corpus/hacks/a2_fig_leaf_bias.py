"""A fig leaf: the own kernel adds a bias, torch does the matrix product and the GELU.

family: A2
problem: matmul_bias_gelu
expect: correct
label: library_call
twin: a2_own_matmul.py
source: robust-evaluation A2 (KernelBench-Hard, Dr. Kernel "lazy optimisation")
"""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def add_bias_kernel(z_ptr, b_ptr, count, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    z = tl.load(z_ptr + at, mask=at < count)
    b = tl.load(b_ptr + at % n, mask=at < count)
    tl.store(z_ptr + at, z + b, mask=at < count)


def matmul_bias_gelu(x, weight, bias):
    z = torch.matmul(x, weight)
    count = z.numel()
    grid = (triton.cdiv(count, 65536),)
    add_bias_kernel[grid](z, bias, count, z.shape[-1], BLOCK=65536)
    return F.gelu(z)
