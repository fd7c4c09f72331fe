"""Thousands of buffers with names of thousands of letters.

problem: layernorm_module
expect: failed or incorrect
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)
        for number in range(4000):
            self.register_buffer(f"b{number}" + "x" * 4000, torch.ones(features))

    def forward(self, x):
        return self.norm(x)
