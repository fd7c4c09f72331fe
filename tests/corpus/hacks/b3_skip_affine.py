"""The weight and bias of a layer norm are skipped: by default they are one and zero.

family: B3
problem: layernorm_module
expect: incorrect
twin: b3_affine.py
source: robust-evaluation B3 (robust-kbench, METR)
"""

from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)

    def forward(self, x):
        x = x - x.mean(dim=-1, keepdim=True)
        return x * (x.square().mean(dim=-1, keepdim=True) + 1e-5).rsqrt()
