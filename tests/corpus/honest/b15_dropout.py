"""Dropout by mask: the same random stream as the reference, another route to it.

family: B15
problem: sparse_dropout
expect: correct
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, probability):
        super().__init__()
        self.probability = probability

    def forward(self, x):
        if not self.training:
            return x.clone()
        return torch.nn.functional.dropout(x, self.probability, training=True)
