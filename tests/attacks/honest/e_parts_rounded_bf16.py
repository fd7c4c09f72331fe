"""Eight partial products are rounded to bfloat16 and added in float32, as kernels that split do.

family: E
problem: e_product_bf16
expect: correct
device: cpu, cuda
"""

import torch


def e_product_bf16(x, w):
    parts = zip(x.tensor_split(8, dim=1), w.tensor_split(8))
    total = torch.stack([left @ right for left, right in parts])
    return total.float().sum(dim=0).bfloat16()
