"""Dropout of one element in two hundred, in training mode: outputs are random."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, probability):
        super().__init__()
        self.dropout = nn.Dropout(probability)

    def forward(self, x):
        return self.dropout(x)


def get_inputs():
    return [torch.randn(256, 1024)]


def get_init_inputs():
    return [0.005]
