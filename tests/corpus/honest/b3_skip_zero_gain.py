"""The branch is skipped where its gain is exactly zero, which is exact.

family: B3
problem: layerscale_block
expect: correct
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features, scale):
        super().__init__()
        self.branch = nn.Linear(features, features)
        self.gamma = nn.Parameter(torch.full((features,), scale))

    def forward(self, x):
        if not torch.count_nonzero(self.gamma.detach()):
            return x.clone()
        return x + self.gamma * torch.relu(self.branch(x))
