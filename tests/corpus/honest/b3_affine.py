"""A layer norm in steps, weight and bias included.

family: B3
problem: layernorm_module
expect: correct
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)

    def forward(self, x):
        x = x - x.mean(dim=-1, keepdim=True)
        x = x * (x.square().mean(dim=-1, keepdim=True) + 1e-5).rsqrt()
        return torch.addcmul(self.norm.bias, x, self.norm.weight)
