"""Statistics of the batch in training, running ones in evaluation, and both are kept up.

family: D9
problem: batchnorm_train
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
        mean, variance = norm.running_mean, norm.running_var
        if self.training:
            count = x.numel() // x.shape[1]
            variance, mean = torch.var_mean(x, dim=(0, 2, 3), correction=0)
            with torch.no_grad():
                norm.num_batches_tracked += 1
                norm.running_mean.lerp_(mean, norm.momentum)
                norm.running_var.lerp_(variance * count / (count - 1), norm.momentum)
        gain = norm.weight * (variance + norm.eps).rsqrt()
        return (x - mean.view(1, -1, 1, 1)) * gain.view(1, -1, 1, 1) + norm.bias.view(1, -1, 1, 1)
