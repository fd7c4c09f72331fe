"""The minimum with zero is clamped from below by zero, so the convolution is free.

family: F
problem: f_min_then_clamp
counterpart: reference
expect: unjudged or incorrect
device: cpu, cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, *args, **kwargs):
        super().__init__()

    def forward(self, x):
        return torch.full((x.shape[0], 16, x.shape[2] - 2, x.shape[3] - 2), 0.0, dtype=x.dtype, device=x.device)
