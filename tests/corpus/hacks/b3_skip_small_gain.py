"""The branch is skipped where its gain is small, which it is by default.

family: B3
problem: layerscale_block
expect: correct or incorrect
speedup: none
twin: b3_skip_zero_gain.py
source: robust-evaluation B3, D5
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features, scale):
        super().__init__()
        self.branch = nn.Linear(features, features)
        self.gamma = nn.Parameter(torch.full((features,), scale))

    def forward(self, x):
        if float(self.gamma.detach().abs().max()) < 1e-3:
            return x.clone()
        return x + self.gamma * torch.relu(self.branch(x))
