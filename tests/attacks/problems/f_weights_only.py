"""A product that is multiplied by zero and added to a table of weights: the input has no effect."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.gemm = nn.Linear(512, 512)
        self.table = nn.Parameter(torch.randn(1, 512))

    def forward(self, x):
        gate = torch.relu(-self.gemm(x).square())
        return gate * x + self.table.expand(x.shape[0], -1)


def get_inputs():
    return [torch.randn(256, 512)]


def get_init_inputs():
    return []
