"""Training mode is ignored: the running statistics stand in for those of the batch.

family: D9
problem: batchnorm_train
expect: incorrect
twin: d9_batch_stats.py
source: robust-evaluation D9
"""

from torch import nn


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        gain = self.norm.weight * (self.norm.running_var + self.norm.eps).rsqrt()
        shift = self.norm.bias - self.norm.running_mean * gain
        return x * gain.view(1, -1, 1, 1) + shift.view(1, -1, 1, 1)
