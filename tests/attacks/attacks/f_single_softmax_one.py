"""A softmax over one element is one, so the product before it is free.

family: F
problem: f_single_softmax
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
        return torch.full((x.shape[0], 1), 1.0, dtype=x.dtype, device=x.device)
