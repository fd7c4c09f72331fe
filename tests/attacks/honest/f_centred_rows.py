"""Rows of many elements lose their mean: the problem resembles one with a constant output.

family: F
problem: f_centred_rows
expect: correct
device: cpu, cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.gemm = nn.Linear(512, 256)

    def forward(self, x):
        y = torch.addmm(self.gemm.bias, x, self.gemm.weight.t())
        y = y.sub_(y.mean(dim=1, keepdim=True))
        return nn.functional.gelu(y)
