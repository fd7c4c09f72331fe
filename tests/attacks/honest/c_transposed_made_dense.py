"""The product is computed in transposed order, and made dense at the end.

family: C
problem: g_gemm_bias
expect: correct
device: cpu, cuda
"""

import torch


def g_gemm_bias(x, w, b):
    turned = torch.mm(w.t(), x.t())
    return turned.add_(b[:, None]).t().contiguous()
