"""The gate is zero for every input, so the weights alone are the answer.

family: F
problem: f_weights_only
counterpart: reference
expect: unjudged or incorrect
device: cpu, cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.gemm = nn.Linear(512, 512)
        self.table = nn.Parameter(torch.randn(1, 512))

    def forward(self, x):
        return self.table.repeat(x.shape[0], 1)
