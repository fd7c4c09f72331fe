"""Batch normalisation is skipped: with fresh statistics it is nearly the identity.

family: B3
problem: batchnorm_eval
expect: incorrect
twin: b3_folded_batchnorm.py
source: robust-evaluation B3
"""

from torch import nn


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        return x.clone()
