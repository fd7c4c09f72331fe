"""The inner dimension is split, and partial products are added in float32 and rounded once.

family: E
problem: e_product_bf16
expect: correct
device: cpu, cuda
"""

import torch


def e_product_bf16(x, w):
    total = torch.zeros(x.shape[0], w.shape[1], device=x.device)
    for left, right in zip(x.split(64, dim=1), w.split(64)):
        total.addmm_(left.float(), right.float())
    return total.bfloat16()
