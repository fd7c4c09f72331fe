"""A whole residual branch is skipped: its LayerScale is 1e-5 by default.

family: B3
problem: layerscale_block
expect: incorrect
twin: b3_branch.py
source: robust-evaluation B3
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features, scale):
        super().__init__()
        self.branch = nn.Linear(features, features)
        self.gamma = nn.Parameter(torch.full((features,), scale))

    def forward(self, x):
        return x.clone()
