"""Matrix product, bias and GELU in one own kernel; torch ops beside it only prepare memory.

family: A2
problem: matmul_bias_gelu
expect: correct
"""

import torch
import triton
import triton.language as tl


@triton.jit
def fused_kernel(
    x_ptr, w_ptr, b_ptr, z_ptr, m, k, n, M: tl.constexpr, K: tl.constexpr, N: tl.constexpr
):
    row = tl.program_id(0) * M + tl.arange(0, M)
    col = tl.program_id(1) * N + tl.arange(0, N)
    total = tl.zeros((M, N), tl.float32)
    for first in range(0, k, K):
        inner = first + tl.arange(0, K)
        x_at = row[:, None] * k + inner[None, :]
        w_at = inner[:, None] * n + col[None, :]
        x = tl.load(x_ptr + x_at, mask=(row[:, None] < m) & (inner[None, :] < k), other=0.0)
        w = tl.load(w_ptr + w_at, mask=(inner[:, None] < k) & (col[None, :] < n), other=0.0)
        total += tl.dot(x, w, input_precision="ieee")
    total += tl.load(b_ptr + col, mask=col < n, other=0.0)[None, :]
    z = 0.5 * total * (1.0 + tl.erf(total * 0.7071067811865476))
    inside = (row[:, None] < m) & (col[None, :] < n)
    tl.store(z_ptr + row[:, None] * n + col[None, :], z, mask=inside)


def matmul_bias_gelu(x, weight, bias):
    x, weight = x.contiguous(), weight.contiguous()
    m, k = x.shape
    n = weight.shape[1]
    out = torch.zeros(m, n, dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(m, 64), triton.cdiv(n, 64))
    fused_kernel[grid](x, weight, bias.contiguous(), out, m, k, n, M=64, K=64, N=64)
    return out.view(m, n)
