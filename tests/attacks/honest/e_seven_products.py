"""One level of Strassen's seven products in float32.

family: E
problem: k_gemm_fp32
expect: correct
device: cpu, cuda
"""

import torch
from torch.nn.functional import pad


def k_gemm_fp32(x, w):
    (m, k), n = x.shape, w.shape[1]
    x, w = pad(x, (0, k % 2, 0, m % 2)), pad(w, (0, n % 2, 0, k % 2))
    (a, b), (c, d) = (half.chunk(2, dim=1) for half in x.chunk(2))
    (e, f), (g, h) = (half.chunk(2, dim=1) for half in w.chunk(2))
    p1, p2, p3, p4 = a @ (f - h), (a + b) @ h, (c + d) @ e, d @ (g - e)
    p5, p6, p7 = (a + d) @ (e + h), (b - d) @ (g + h), (a - c) @ (e + f)
    top = torch.cat([p5 + p4 - p2 + p6, p1 + p2], dim=1)
    low = torch.cat([p3 + p4, p1 + p5 - p3 - p7], dim=1)
    return torch.cat([top, low])[:m, :n].contiguous()
