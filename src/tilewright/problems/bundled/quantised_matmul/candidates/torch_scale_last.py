"""The scale is the same along each sum, so it is applied to the product, not to the weights."""

import torch


def quantised_matmul(x, weight, scale):
    return torch.mm(x, weight.to(x.dtype).T).mul_(scale)
