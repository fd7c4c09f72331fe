"""A row's only element loses its mean, so zeros are the answer and the product is free.

family: F
problem: f_centred_max
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
        return torch.full((x.shape[0], 1), 0.0, dtype=x.dtype, device=x.device)
