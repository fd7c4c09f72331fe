"""Batch normalisation folded into a gain and an offset for each channel, at each forward.

family: B3
problem: batchnorm_eval
expect: correct
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        norm = self.norm
        gain = norm.weight * (norm.running_var + norm.eps).rsqrt()
        offset = norm.bias - norm.running_mean * gain
        return torch.addcmul(offset[:, None, None], x, gain[:, None, None])
