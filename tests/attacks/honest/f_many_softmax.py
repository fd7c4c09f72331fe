"""A softmax over eight means, where the output depends on the input.

family: F
problem: f_many_softmax
expect: correct
device: cpu, cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.gemm = nn.Linear(512, 512)

    def forward(self, x):
        weight = self.gemm.weight.unflatten(0, (8, 64)).mean(dim=1)
        bias = self.gemm.bias.unflatten(0, (8, 64)).mean(dim=1)
        return torch.softmax(8 * torch.addmm(bias, x, weight.t()), dim=1)
